import Ferry
import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

/// `ferry files …`, and such processes killed during a write.
@Suite("The commands of a file store", .hangLimit)
struct FilesCommandTests {
  private let directory: TemporaryDirectory
  private let store: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-files")
    store = directory.file("store").path
  }

  private func ferry(_ arguments: String..., exits code: Int32 = 0) async throws
    -> ChildProcess
    .Finished
  {
    let finished = try await ChildProcess.run(try Executables.ferry(), ["files"] + arguments)
    #expect(finished.status == .exited(code), "\(arguments): \(finished.error)")
    return finished
  }

  private func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    try Data(bytes).write(to: directory.file(name))
    return directory.file(name).path
  }

  @Test("a file is stored, listed, shown, read, checked and removed")
  func all() async throws {
    let url = "https://example.org/hello.txt"
    let source = try file("hello", Array("hello\n".utf8))
    let missing = try await ferry("list", store, exits: 1)
    #expect(missing.error.contains("contains no file store"))
    _ = try await ferry("put", store, url, source)
    _ = try await ferry("put", store, "other", source)
    #expect(try await ferry("list", store).output.contains(url))
    let listed = try await ferry("list", store, "--prefix", "https:", "--json").output
    #expect(listed.contains("\"bytes\":6,\"sha256\":\"5891b5b522d5df08"))
    #expect(!listed.contains("other"))
    #expect(try await ferry("show", store, "--json").output.contains("\"files\":2,\"bytes\":12"))
    let shown = try await ferry("show", store, url).output
    let path = try #require(shown.split(separator: "\n").last?.dropFirst("path: ".count))
    #expect(FileManager.default.contents(atPath: String(path)) == Data("hello\n".utf8))
    #expect(try await ferry("get", store, url).output == "hello\n")
    #expect(try await ferry("check", store).output == "2 files checked, 0 damaged or missing\n")
    let wrong = String(repeating: "0", count: 64)
    _ = try await ferry("check", store, url, "--sha256", wrong, exits: 4)
    _ = try await ferry("put", store, url, source, "--sha256", wrong, exits: 1)
    try FileManager.default.removeItem(atPath: String(path))
    let report = try await ferry("check", store, "--json", exits: 4).output
    #expect(report.contains("\"state\":\"missing\""))
    _ = try await ferry("get", store, url, exits: 1)
    _ = try await ferry("remove", store, exits: 2)
    #expect(try await ferry("remove", store, "other").output == "removed 1 file\n")
    #expect(try await ferry("remove", store, "--older-than", "1d").output == "removed 0 files\n")
    #expect(try await ferry("remove", store, "--all").output == "removed 1 file\n")
    #expect(try await ferry("list", store).output.contains("no such file"))
  }

  @Test("an encrypted store needs its key")
  func sealed() async throws {
    let key = try file("key", Array(String(repeating: "ab", count: 32).utf8))
    let source = try file("hello", Array("hello\n".utf8))
    _ = try await ferry("put", store, "x", source, "--key-file", key)
    #expect(try await ferry("get", store, "x", "--key-file", key).output == "hello\n")
    let failed = try await ferry("get", store, "x", exits: 1)
    #expect(failed.error.contains("are encrypted; give their key"))
    let other = try file("other", [UInt8](repeating: 200, count: 32))
    #expect(
      try await ferry("list", store, "--key-file", other, exits: 1).error.contains("does not fit"))
  }

  @Test("a process killed at any step leaves the old or the new file, and no rest")
  func killed() async throws {
    let size = 6 << 20
    let contents = (0..<2).map { number in [UInt8](repeating: UInt8(number + 1), count: size) }
    let sources = try contents.enumerated().map { try file("source-\($0)", $1) }
    _ = try await ferry("put", store, "x", sources[0])
    let killer = try await StepKiller()
    var found: [Int] = []
    while true {
      let round = found.count + 1
      let source = sources[found.last == 1 ? 0 : 1]
      let ended = try await killer.run(
        try Executables.ferry(), ["files", "put", store, "x", source], killedAt: round)
      if ended.status == .exited(0) { break }
      #expect(ended.status == .killed(signal: SIGKILL), "\(ended.error)")
      let files = try await FileStore.open(store)
      let bytes = try await files.read("x")
      found.append(try #require(contents.firstIndex(of: bytes), "round \(round)"))
      #expect(try await files.check("x") == .intact, "round \(round)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: store + "/new").isEmpty)
      #expect(FileManager.default.contents(atPath: files.path(for: "x")) == Data(bytes))
    }
    #expect(Set(found) == [0, 1] && found.count > 10)
  }
}
