import FerryLaboratory
import Foundation

extension Benchmark {
  /// The download of missions by devices.
  static let files = Benchmark(
    name: "files", summary: "Files served over HTTP: many of 64 KiB, and one of 1 GiB."
  ) { context in
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let small = try (0..<256).map { try make("small-\($0)", of: 64 << 10, in: directory) }
    let large = [try make("large", of: 1 << 30, in: directory)]
    let servers = [
      try await FileServer.ferry(directory), try await FileServer.best(directory),
    ]
    let contest = Contest(rounds: context.size(7, quick: 3), context: context)
    context.begin("files", "rounds", total: contest.steps(contestants: 4))
    let seconds = context.isQuick ? 1.0 : 2.0
    let many = try await contest.medians(
      servers.map { server in
        {
          try await DownloadCrowd.run(
            on: server, files: small, size: 64 << 10, clients: 16, seconds: seconds)
        }
      })
    let one = try await contest.medians(
      servers.map { server in
        {
          try await DownloadCrowd.run(
            on: server, files: large, size: 1 << 30, clients: 1, seconds: seconds)
        }
      })
    let rival = servers[1].name
    return [
      Measurement(
        name: "files of 64 KiB", figure: Amount(many[0], .perSecond("files")),
        raw: Amount(many[1], .perSecond("files")), target: .ratioAtLeast(0.5),
        notes: ["16 persistent connections, against \(rival)"]),
      Measurement(
        name: "a file of 1 GiB", figure: Amount(one[0] * 1_073.741824, .perSecond("MB")),
        raw: Amount(one[1] * 1_073.741824, .perSecond("MB")), target: .ratioAtLeast(0.8),
        notes: ["one connection, against \(rival)"]),
    ]
  }

  /// Makes a file full of zeros. The measured content is served from the page cache.
  private static func make(
    _ name: String, of size: Int, in directory: TemporaryDirectory
  ) throws -> String {
    let path = directory.file(name).path
    let descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw BenchError("cannot create \(path)") }
    defer { close(descriptor) }
    guard ftruncate(descriptor, off_t(size)) == 0 else {
      throw BenchError("no disk space for \(path)")
    }
    return name
  }
}
