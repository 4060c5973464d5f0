import FerryProtocol
import Foundation

extension DownloadJob {
  /// Writes a piece of the content to the file at ``partialPath``, encrypted if there is a
  /// ``seal``. For a downloader of the app. The call blocks for as long as the disk does.
  ///
  /// If the file is encrypted, a piece begins at a multiple of 64 KiB. It ends at one, too, or at the
  /// end of the content. The size must be known.
  public func write(_ bytes: [UInt8], at offset: Int64) throws(DownloadError) {
    let system = SystemFileCalls()
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC
    let descriptor = system.open(partialPath, flags, 0o600)
    guard descriptor >= 0 else { throw .file("open", partialPath) }
    let file = RandomAccessFile(descriptor: descriptor, path: partialPath, system)
    do throws(FileStoreError) {
      guard let seal else { return try file.write(bytes, at: offset) }
      let end = offset + Int64(bytes.count)
      guard let size, offset % SealedFile.partBytes == 0,
        end == size || end < size && end % SealedFile.partBytes == 0
      else {
        throw FileStoreError(.files, "a piece of encrypted content has whole parts of 64 KiB")
      }
      try seal.format(try seal.begin(file), size: size).write(bytes, at: offset, to: file)
    } catch {
      throw DownloadError(converting: error)
    }
  }
}
