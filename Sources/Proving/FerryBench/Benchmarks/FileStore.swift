import Ferry
import FerryLaboratory
import Foundation

extension Benchmark {
  /// Files by key, plain and encrypted.
  static let fileStore = Benchmark(
    name: "file-store", summary: "Files by key: written and read, plain and encrypted."
  ) { context in
    let place = try await FileStorePlace(bytes: context.size(256, quick: 64) << 20)
    let contest = Contest(rounds: context.size(5, quick: 3), context: context)
    context.begin("file-store", "rounds", total: contest.steps(contestants: 8))
    let figures = try await contest.medians([
      { try await place.write(place.plain) },
      { try await place.run("cp source copy && sync copy") },
      { try await place.write(place.sealed) },
      { try await place.run("\(place.cipher) -in source -out sealed && sync sealed") },
      { try await place.read(place.plain) }, { try await place.run("cat copy > /dev/null") },
      { try await place.read(place.sealed) },
      { try await place.run("\(place.cipher) -d -in sealed -out /dev/null") },
    ])
    func measurement(_ name: String, _ index: Int, _ notes: String) -> Measurement {
      Measurement(
        name: name, figure: Amount(figures[index], .perSecond("MB")),
        raw: Amount(figures[index + 1], .perSecond("MB")), notes: [notes])
    }
    return [
      measurement("a file stored", 0, "with its SHA-256 and on the disk, against cp and sync"),
      measurement("a file stored encrypted", 2, "against openssl enc -aes-256-ctr and sync"),
      measurement("a stored file read", 4, "in parts of 1 MiB, against cat"),
      measurement("an encrypted file read", 6, "in parts of 1 MiB, against openssl enc -d"),
    ]
  }
}

/// Two stores and the files of the raw programs in one folder.
private struct FileStorePlace: Sendable {
  let plain: FileStore
  let sealed: FileStore
  /// The raw cipher: counter mode, since `openssl enc` has no authenticated one.
  let cipher =
    "openssl enc -aes-256-ctr -K \(String(repeating: "03", count: 32)) "
    + "-iv \(String(repeating: "00", count: 16))"
  private let directory: TemporaryDirectory
  private let bytes: Int

  init(bytes: Int) async throws {
    directory = try TemporaryDirectory(prefix: "ferry-bench")
    self.bytes = bytes
    let source = directory.file("source").path
    guard FileManager.default.createFile(atPath: source, contents: nil),
      let file = FileHandle(forWritingAtPath: source)
    else { throw BenchError("cannot create \(source)") }
    var random = SystemRandomNumberGenerator()
    let part = Data((0..<(1 << 20)).map { _ in UInt8.random(in: 0...255, using: &random) })
    for _ in 0..<(bytes >> 20) { try file.write(contentsOf: part) }
    try file.close()
    plain = try await FileStore.open(directory.file("plain").path)
    sealed = try await FileStore.open(
      directory.file("store").path, key: [UInt8](repeating: 3, count: 32))
  }

  func write(_ files: FileStore) async throws -> Double {
    try await timed {
      try await files.put(contentsOf: directory.file("source").path, for: "file")
    }
  }

  func read(_ files: FileStore) async throws -> Double {
    try await timed {
      let reader = try await files.open("file")
      var offset: Int64 = 0
      while offset < reader.file.size {
        offset += Int64(try await reader.read(from: offset, count: 1 << 20).count)
      }
    }
  }

  func run(_ script: String) async throws -> Double {
    try await timed {
      let ended = try await ChildProcess.run(
        URL(filePath: "/bin/sh"), ["-c", script], directory: directory.url)
      guard ended.status == .exited(0) else { throw BenchError("\(script): \(ended.error)") }
    }
  }

  /// Returns megabytes a second.
  private func timed(_ body: () async throws -> Void) async throws -> Double {
    let start = ContinuousClock.now
    try await body()
    let time = ContinuousClock.now - start
    return Double(bytes) / 1e6 / (time / .seconds(1))
  }
}
