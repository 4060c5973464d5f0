import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Several processes on one replica's file.
@Suite(.hangLimit)
struct SharedFileTests {
  @Test("two concurrent syncs of one file send everything once", arguments: StoreKind.allCases)
  func twoSyncs(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    for number in 1...20 { try await pair.one.write(Sample.notes(3, "note-\(number)")) }
    let trap = pair.proxy.trap(.answer, of: "POST ", .hold)
    let first = try pair.one.start("sync", "--json")
    try await trap.sprung()
    let second = try pair.one.start("sync", "--json")
    // Other processes use the file all the while.
    for number in 1...2 {
      try await pair.one.ferry("sql", "INSERT INTO notes VALUES ('late-\(number)', 'x', 1)")
    }
    #expect(second.endedWith == nil)
    trap.release()
    for child in [first, second] {
      #expect(try await child.exitStatus() == .exited(0))
      #expect(child.output.contains("\"duplicates\":0"))
    }
    try await expectSettled([pair.one, pair.two], pair.server, operations: 62)
  }

  @Test("writes of several processes arrive once while another process watches")
  func writersBesideWatch() async throws {
    let pair = try await Pair.make()
    let watch = try pair.one.start("sync", "--watch", "--json")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 1...3 {
        group.addTask {
          for number in 1...8 {
            try await pair.one.ferry(
              "sql",
              """
              INSERT INTO notes VALUES ('\(writer)-\(number)', 'x', \(number));
              UPDATE notes SET body = 'y' WHERE id = '\(writer)-\(number)'
              """)
          }
        }
      }
      try await group.waitForAll()
    }
    try await eventually("all to be sent", from: watch) { try await pair.one.status().pending == 0 }
    #expect(watch.endedWith == nil)
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
    try await expectSettled([pair.one, pair.two], pair.server, operations: 24)
    #expect(try await pair.two.count() == 24)
    #expect(try await pair.two.value("SELECT count(*) FROM notes WHERE body = 'y'") == 24)
  }

  @Test("a sync waits for the running sync, and a killed sync leaves no lock behind")
  func killedHolder() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    let trap = pair.proxy.trap(.answer, of: "POST ", .hold)
    let holder = try pair.one.start("sync")
    try await trap.sprung()
    holder.send(SIGKILL)
    _ = try await holder.exitStatus()
    pair.proxy.removeTraps()
    #expect(try await pair.one.exchange().pushed == 0)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 1)
  }
}
