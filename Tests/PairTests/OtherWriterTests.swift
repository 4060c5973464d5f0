import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Other programs writing to a replica's file with `libferry_sqlite`, as processes.
@Suite("Other writers", .hangLimit)
struct OtherWriterTests {
  private static let operations = "SELECT grp, kind, record FROM ferry_operations ORDER BY seq"

  @Test("writes of another program reach the other device", arguments: OtherWriter.allCases)
  func synced(_ writer: OtherWriter) async throws {
    let pair = try await Pair.make()
    let finished = try await writer.run(
      [
        "BEGIN; INSERT INTO notes VALUES ('a', 'x', 1); INSERT INTO notes VALUES ('b', 'y', 2); COMMIT",
        "UPDATE notes SET n = 7 WHERE id = 'a'",
        "REPLACE INTO notes VALUES ('b', 'z', 3)",
        "BEGIN; INSERT INTO notes VALUES ('c', 'w', 4); ROLLBACK",
        "DELETE FROM notes WHERE id = 'a'",
      ], on: pair.one.path)
    #expect(finished.status == .exited(0), "\(finished.error)")
    let recorded = try await pair.one.rows(Self.operations)
    #expect(
      recorded == [
        [1, "insert", "a"], [1, "insert", "b"], [3, "update", "a"], [4, "delete", "b"],
        [4, "insert", "b"], [6, "delete", "a"],
      ])
    for device in [pair.one, pair.two] { try await device.exchange() }
    #expect(try await pair.two.rows() == [["b", "z", 3]])
    try await expectEqual([pair.one, pair.two])
    #expect(try await pair.one.status().pending == 0)
  }

  @Test("a write without the library fails and changes nothing", arguments: OtherWriter.allCases)
  func unrecorded(_ writer: OtherWriter) async throws {
    let device = try await Device.offline()
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    for sql in ["INSERT INTO notes VALUES ('b', 'y', 2)", "DELETE FROM notes"] {
      let finished = try await writer.run([sql], on: device.path, isLoading: false)
      #expect(finished.status == .exited(1))
      #expect(finished.error.contains("no such function: ferry_"), "\(finished.error)")
    }
    #expect(try await device.rows() == [["a", "x", 1]])
    #expect(try await device.rows(Self.operations) == [[1, "insert", "a"]])
  }

  @Test(
    "a failed statement of another program leaves no operation", arguments: OtherWriter.allCases)
  func failed(_ writer: OtherWriter) async throws {
    let device = try await Device.offline()
    let finished = try await writer.run(
      [
        "INSERT INTO notes VALUES ('a', 'x', 1)",
        "INSERT INTO notes VALUES ('b', 'y', 2), ('a', 'z', 3)",
      ],
      on: device.path)
    #expect(finished.status != .exited(0) && finished.error.contains("UNIQUE"))
    #expect(try await device.rows(Self.operations) == [[1, "insert", "a"]])
  }

  @Test("a watching process sends the writes of programs that write at the same time")
  func beside() async throws {
    let pair = try await Pair.make()
    let watch = try pair.one.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in OtherWriter.allCases {
        group.addTask {
          // Commits on a slow disk would keep the file from the others for too long.
          let scripts =
            ["PRAGMA synchronous = OFF"]
            + (1...20).map { "INSERT INTO notes VALUES ('\(writer)-\($0)', 'x', \($0))" }
          let finished = try await writer.run(scripts, on: pair.one.path)
          #expect(finished.status == .exited(0), "\(finished.error)")
        }
      }
      for number in 1...5 {
        try await pair.one.ferry("sql", "INSERT INTO notes VALUES ('own-\(number)', 'x', 1)")
      }
      try await group.waitForAll()
    }
    try await eventually("all to be sent", from: watch) { try await pair.one.status().pending == 0 }
    watch.send(SIGINT)
    #expect(try await watch.exitStatus() == .exited(0))
    try await expectSettled([pair.one, pair.two], pair.server, operations: 45)
    #expect(try await pair.two.count() == 45)
  }

  @Test(
    "a file that is no replica keeps its bytes, its time and its neighbours",
    arguments: OtherWriter.allCases, ["DELETE", "WAL"])
  func plain(_ writer: OtherWriter, _ mode: String) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("plain.db")
    let made = try await writer.run(
      ["PRAGMA journal_mode = \(mode)", "CREATE TABLE t(x); INSERT INTO t VALUES (1)"],
      on: file.path, isLoading: false)
    #expect(made.status == .exited(0), "\(made.error)")
    let bytes = try Data(contentsOf: file)
    let date = try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate]
    let looked = try await writer.run(
      ["SELECT x FROM t", "PRAGMA journal_mode", "PRAGMA recursive_triggers"], on: file.path)
    #expect(looked.status == .exited(0), "\(looked.error)")
    #expect(looked.output == "1\n\(mode.lowercased())\n0\n")
    #expect(try Data(contentsOf: file) == bytes)
    let later = try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate]
    #expect(later as? Date == date as? Date)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["plain.db"])
  }

  @Test(
    "an empty file and a new one stay as the program makes them", arguments: OtherWriter.allCases)
  func empty(_ writer: OtherWriter) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("new.db")
    let finished = try await writer.run(["SELECT 1"], on: file.path)
    #expect(finished.status == .exited(0), "\(finished.error)")
    #expect(try Data(contentsOf: file).isEmpty)
  }

  @Test(
    "a replica of another format stays unchanged, and the program goes on",
    arguments: OtherWriter.allCases)
  func otherFormat(_ writer: OtherWriter) async throws {
    let device = try await Device.offline()
    try await device.tamper("UPDATE ferry_replica SET version = 99")
    let refused = try await writer.run(["SELECT 1"], on: device.path)
    #expect(refused.error.contains("format 99") && refused.error.contains("update Ferry"))
    #expect(refused.status == .exited(1))
    let version = try await writer.run(
      ["SELECT version FROM ferry_replica"], on: device.path, isLoading: false)
    #expect(version.output == "99\n")
  }

  @Test("a program whose load fails may load it again on the same connection")
  func retried() async throws {
    let device = try await Device.offline()
    let program = """
      import sqlite3, sys
      connection = sqlite3.connect(sys.argv[1], isolation_level=None)
      connection.enable_load_extension(True)
      connection.execute('BEGIN')
      try:
          connection.load_extension(sys.argv[2])
      except sqlite3.OperationalError as error:
          print(error)
      connection.execute('ROLLBACK')
      connection.load_extension(sys.argv[2])
      connection.execute("INSERT INTO notes VALUES ('a', 'x', 1)")
      """
    let finished = try await ChildProcess.run(
      OtherWriter.interpreter, ["-c", program, device.path, try OtherWriter.library()])
    #expect(finished.status == .exited(0), "\(finished.error)")
    #expect(finished.output.contains("a transaction is open"))
    #expect(try await device.rows(Self.operations) == [[1, "insert", "a"]])
  }
}

extension Device {
  /// Makes a replica with a tracked table and without a server.
  fileprivate static func offline() async throws -> Device {
    let device = try Device()
    let replica = try await device.open()
    try await replica.write { try $0.execute(Device.notes) }
    try await replica.track("notes")
    return device
  }
}
