import Ferry
import FerryHTTPServer
import FerryTestSupport
import Foundation
import Testing

/// The example app `ferry-courses`, whose process is killed while it composes missions.
@Suite(
  "Composed missions whose process is killed", .hangLimit,
  .enabled(if: NginxFileServer.isAvailable))
struct OwnMissionKillTests {
  /// The bytes possibly read from two connections by a killed process, but not written; see
  /// `MissionKillTests`.
  private static let lossPerKill = 2 * 192 << 10

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var folder: String { directory.file("courses").path }

  private func run(_ arguments: String...) async throws -> String {
    let finished = try await ChildProcess.run(
      try Executables.ferryCourses(), [folder] + arguments)
    #expect(finished.status == .exited(0), "\(finished.output)\(finished.error)")
    return finished.output
  }

  /// Returns title and folder of the only course.
  private func course() async throws -> (title: String, folder: String) {
    let listed = try await run("list")
    let found = try #require(
      listed.firstMatch(of: /knots: (?<title>[^,\n]*), film and map: (?<folder>.*)\n/), "\(listed)")
    return (String(found.title), String(found.folder))
  }

  @Test("a killed process gives the model back, and fetches almost nothing twice")
  func killed() async throws {
    let draft = try Draft()
    try draft.write("film", mebibytes: 16)
    let film = Array(try Data(contentsOf: draft.file("film")))
    let server = try await NginxFileServer(rate: 0)
    try server.replace(film, modified: 1_000_000_000)
    let proxy = try TCPProxy(to: server.port, answerBytesMax: 64 << 10)
    let (kills, size) = (6, 2 * film.count)
    var read = 0
    for number in 1...kills {
      let before = proxy.byteCount(.answer)
      let arguments =
        ["add", "knots", "Knots"]
        + ["film", "map"].map { "\($0)=\(proxy.url)/file?\($0)" }
      // Nothing comes before the trap is set: the process would be at an end by then.
      proxy.set(LinkConditions(answers: .stalled))
      let child = try ChildProcess(
        try Executables.ferryCourses(), [folder] + (number == 1 ? arguments : ["fetch"]))
      let trap = proxy.trap(
        .answer, of: "/file", after: size / (kills + 1), .call { child.send(SIGSTOP) })
      proxy.set(LinkConditions())
      try await trap.sprung(from: child)
      read += try await proxy.kill(child) - before
      // The look itself fetches nothing.
      proxy.refuse()
      let course = try await course()
      #expect(course.title == "Knots" && course.folder == "not here yet")
      proxy.refuse(false)
    }
    let before = proxy.byteCount(.answer)
    let last = try await run("fetch")
    // The proxy counts bytes after it has sent them.
    try await eventually("the connections to end") { proxy.connectionCount == 0 }
    read += proxy.byteCount(.answer) - before
    #expect(last.hasSuffix("knots: \(size) of \(size) bytes, 2 of 2 films\nknots: done\n"))
    #expect(read >= size)
    #expect(read <= size + kills * Self.lossPerKill, "\(read - size) bytes twice")
    for name in ["film", "map"] {
      let file = URL(filePath: try await course().folder).appending(path: name)
      #expect(try Array(Data(contentsOf: file)) == film)
    }
  }

  @Test("a process that is killed at any step leaves the former version or the next one, whole")
  func steps() async throws {
    let killer = try await StepKiller()
    // The content follows from the address, so no version can get another one's.
    let server = try HTTPServer(configuration: HTTPServer.Configuration()) { request in
      let content = Array("content \(request.segments.first ?? "")".utf8)
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "text/plain"], body: .bytes(content))
    }
    func add(_ round: Int, killedAt step: Int = 0) async throws -> ChildProcess.Finished {
      let films = ["film", "map"].map { "\($0)=http://127.0.0.1:\(server.port)/\(round)/\($0)" }
      return try await killer.run(
        try Executables.ferryCourses(), [folder, "add", "knots", "Round \(round)"] + films,
        killedAt: step)
    }
    _ = try await add(0)
    var (round, kills, found) = (0, 0, Set<String>())
    /// Composes the next version, and returns `true` if the process came to its end.
    func ended(killedAt step: Int) async throws -> Bool {
      round += 1
      let added = try await add(round, killedAt: step)
      if added.status == .exited(0) { return true }
      #expect(added.status == .killed(signal: SIGKILL), "\(added.error)")
      kills += 1
      let course = try await course()
      found.insert(course.title == "Round \(round)" ? "next" : "former")
      for name in ["film", "map"] {
        let file = URL(filePath: course.folder).appending(path: name)
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text == course.title.replacing("Round", with: "content"), "step \(step)")
      }
      return false
    }
    // Each of the first steps, and then fewer of them.
    var step = 1
    while try await !ended(killedAt: step) { step += 1 + step / 20 }
    // The next version is there after the last steps only, whose number differs from run to run: each
    // one from the end on, until a kill has left it.
    while !found.contains("next"), step > 1 {
      step -= 1
      _ = try await ended(killedAt: step)
    }
    #expect(kills > 20 && found == ["former", "next"], "\(found)")
    // On a busy machine a part may be left to the next fetch.
    _ = try await add(round + 1)
    _ = try await run("fetch")
    #expect(try await course().title == "Round \(round + 1)")
    let rest = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/staged")
    #expect(rest.isEmpty)
    await server.stop(grace: .zero)
  }

  @Test("mistakes are explained")
  func mistakes() async throws {
    for arguments in [[], [folder], [folder, "add", "knots", "Knots", "film"], [folder, "dance"]] {
      let finished = try await ChildProcess.run(try Executables.ferryCourses(), arguments)
      #expect(finished.status == .exited(64) && finished.output.hasPrefix("usage:"))
    }
    let finished = try await ChildProcess.run(
      try Executables.ferryCourses(), [folder, "add", "knots", "Knots", "../film=http://x/"])
    #expect(finished.status == .exited(1) && finished.output.contains("../film"))
  }
}
