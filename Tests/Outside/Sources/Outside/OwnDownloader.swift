import Ferry
import Foundation
import Synchronization

/// Fetches each file by one request, through the function lent by the replica.
final class OwnDownloader: Downloader {
  private let open: DownloadOpening
  private let counter = Mutex(0)

  init(_ open: @escaping DownloadOpening) { self.open = open }

  /// The number of fetched files.
  var count: Int { counter.withLock { $0 } }

  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    var bytes: [UInt8] = []
    do {
      let stream = try await open(job.source, [:])
      guard stream.status == 200 else {
        throw DownloadError(.server(stream.status), "the server has no such file")
      }
      for try await part in stream.body { bytes += part }
      try Data(bytes).write(to: URL(fileURLWithPath: job.partialPath))
    } catch let error as DownloadError {
      throw error
    } catch {
      throw DownloadError(.offline, "\(error)")
    }
    let size = Int64(bytes.count)
    guard job.size == nil || job.size == size else {
      throw DownloadError(.wrongContent(chunk: nil), "the file has another size")
    }
    counter.withLock { $0 += 1 }
    progress(DownloadProgress(bytesDone: size, bytesTotal: size, bytesFetched: size))
    return DownloadOutcome(bytesFetched: size, bytesReused: 0, size: size, hash: job.hash)
  }
}
