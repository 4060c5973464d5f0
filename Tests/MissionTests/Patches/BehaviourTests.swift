import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryPatches

/// Behaviours with a runner whose results the tests choose.
@Suite("Behaviours", .hangLimit)
struct BehaviourTests {
  private let directory: TemporaryDirectory
  private let runner = PreparedRunner()
  private let clock = SetClock()

  init() throws { directory = try TemporaryDirectory(prefix: "ferry-patches") }

  private var ledger: String { directory.file("patches.json").path }

  private func open(
    _ runner: (any PatchRunning)? = nil, version: String = PatchFixture.version
  ) async throws -> Behaviours {
    let clock = clock
    return try await Behaviours.open(
      app: PatchFixture.app, version: version, trusting: [try PatchFixture.publicKey()],
      ledger: ledger, limits: PatchLimits(), runner: runner ?? self.runner, now: { clock.now })
  }

  private func register(_ behaviours: Behaviours) async -> Behaviour<Int, Int> {
    await behaviours.register("double") { (number: Int) in number * 2 }
  }

  private func json(_ text: String) -> PreparedRunner.Answer { .success(Array(text.utf8)) }

  @Test("a behaviour without a patch runs its native code")
  func native() async throws {
    let behaviours = try await open()
    let double = await register(behaviours)
    #expect(try await double(21) == 42)
    #expect(runner.requests.isEmpty)
    #expect(await behaviours.status.map(\.patchedCalls) == [0])
    #expect(!FileManager.default.fileExists(atPath: ledger))
  }

  @Test("a patch replaces the native code until it expires")
  func patched() async throws {
    let behaviours = try await open()
    let double = await register(behaviours)
    let report = try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    #expect(report.loaded.map(\.sequence) == [5] && report.refused.isEmpty)
    runner.prepare(json("7"))
    #expect(try await double(21) == 7)
    #expect(runner.requests.map(\.input) == [Array("21".utf8)])
    #expect(await behaviours.status.map(\.patch) == [5])
    clock.set(PatchFixture.now + 1_000)
    #expect(try await double(21) == 42)
    #expect(await behaviours.status.map(\.patch) == [nil])
  }

  @Test(
    "a call whose patch fails runs the native code, is counted and listed",
    arguments: [
      .failure(.timeUsedUp), .failure(.memoryUsedUp), .failure(.threw("no")),
      .failure(.outputTooLarge), .failure(.hostEnded("signal 9")), .success(Array("\"7\"".utf8)),
      .success(Array("7.5".utf8)), .success(Array("1e30".utf8)), .success(Array("{}".utf8)),
      .success(Array("null".utf8)), .success(Array("7 7".utf8)),
    ] as [PreparedRunner.Answer])
  func fallback(_ answer: PreparedRunner.Answer) async throws {
    let behaviours = try await open()
    let double = await register(behaviours)
    try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    runner.prepare(answer)
    #expect(try await double(21) == 42)
    let fallback = try #require(await behaviours.fallbacks.first)
    #expect(fallback.behaviour == "double" && fallback.sequence == 5)
    #expect(fallback.time == PatchFixture.now)
    switch answer {
    case .failure(let reason): #expect(fallback.reason == reason)
    case .success:
      guard case .wrongShape = fallback.reason else {
        Issue.record("\(fallback.reason)")
        return
      }
    }
    let status = try #require(await behaviours.status.first)
    #expect(status.failedCalls == 1 && status.lastFailure == fallback.reason)
    #expect(status.patch == 5)
  }

  @Test("a patch that fails three times in a row is disabled, also after a restart")
  func disabled() async throws {
    let patch = PatchFixture.signed(PatchFixture.document())
    do {
      let behaviours = try await open()
      let double = await register(behaviours)
      try await behaviours.load([patch])
      runner.prepare(.failure(.timeUsedUp), .failure(.threw("no")), json("7"))
      for expected in [42, 42, 7] { #expect(try await double(21) == expected) }
      for _ in 1...2 { #expect(try await double(21) == 42) }
      #expect(await behaviours.status.map(\.isDisabled) == [false])
    }
    // Two failures in a row are known after the restart: the third one disables.
    let behaviours = try await open()
    let double = await register(behaviours)
    #expect(try await behaviours.load([patch]).loaded.map(\.isDisabled) == [false])
    #expect(try await double(21) == 42)
    #expect(await behaviours.status.map(\.isDisabled) == [true])
    let count = runner.requests.count
    #expect(try await double(21) == 42)
    #expect(runner.requests.count == count)
    let again = try await open()
    let last = await register(again)
    #expect(try await again.load([patch]).loaded.map(\.isDisabled) == [true])
    #expect(try await last(21) == 42)
    #expect(runner.requests.count == count)
    // The app can enable it, and a newer patch is enabled.
    try await again.enable("double")
    runner.prepare(json("8"))
    #expect(try await last(21) == 8)
    #expect(await again.status.map(\.patch) == [5])
  }

  @Test("a missing host, or an unsuitable input, is not the patch's fault")
  func innocent() async throws {
    let behaviours = try await open()
    let double = await register(behaviours)
    try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    for _ in 1...5 {
      runner.prepare(.failure(.hostMissing("no file")), .failure(.notConfined("no seccomp")))
      for _ in 1...2 { #expect(try await double(21) == 42) }
      #expect(try await double(1 << 60) == 1 << 61)
    }
    #expect(runner.requests.count == 10)
    let status = try #require(await behaviours.status.first)
    #expect(!status.isDisabled && status.failedCalls == 15)
    runner.prepare(json("7"))
    #expect(try await double(21) == 7)
  }

  @Test("an app without a host runs its native code, and lists the reason")
  func noHost() async throws {
    let behaviours = try await Behaviours.open(
      app: PatchFixture.app, version: PatchFixture.version,
      trusting: [try PatchFixture.publicKey()], ledger: ledger, host: nil)
    let double = await register(behaviours)
    var document = PatchFixture.document()
    document.expires = Limits.wallTimeMax
    #expect(try await behaviours.load([PatchFixture.signed(document)]).loaded.count == 1)
    #expect(try await double(21) == 42)
    guard case .hostMissing = await behaviours.fallbacks.first?.reason else {
      Issue.record("\(await behaviours.fallbacks)")
      return
    }
  }

  @Test("a delivery replaces all patches, and an older patch stays away after a restart")
  func deliveries() async throws {
    let new = PatchFixture.signed(PatchFixture.document(sequence: 6))
    let old = PatchFixture.signed(PatchFixture.document(sequence: 5))
    let behaviours = try await open()
    let double = await register(behaviours)
    #expect(try await behaviours.load([old]).loaded.map(\.sequence) == [5])
    #expect(try await behaviours.load([new]).loaded.map(\.sequence) == [6])
    #expect(try await behaviours.load([]).loaded.isEmpty)
    #expect(try await double(21) == 42 && runner.requests.isEmpty)
    let later = try await open()
    _ = await register(later)
    let report = try await later.load([old, Array("junk".utf8)])
    #expect(report.loaded.isEmpty)
    #expect(report.refused.map(\.source) == ["0", "1"])
    #expect(report.refused.first?.reason == .downgrade(newest: 6))
    #expect(try await later.load([new]).loaded.map(\.sequence) == [6])
  }

  @Test("a patch ends with the release that it was made for")
  func nextRelease() async throws {
    let behaviours = try await open(version: "2.4.0")
    _ = await register(behaviours)
    let report = try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    #expect(report.refused.map(\.reason) == [.otherVersion(["2.2.9", "2.3.0"])])
  }

  @Test("no patch comes into force while the ledger cannot be written or read")
  func ledgerFaults() async throws {
    let behaviours = try await open()
    let double = await register(behaviours)
    try FileManager.default.createDirectory(
      atPath: ledger + ".new", withIntermediateDirectories: false)
    await #expect(throws: PatchError.self) {
      try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    }
    #expect(try await double(21) == 42 && runner.requests.isEmpty)
    try Data("{\"format\":1,".utf8).write(to: directory.file("patches.json"))
    await #expect(throws: PatchError.self) { _ = try await open() }
  }

  @Test("a failed call succeeds although the ledger cannot be written, which is reported")
  func ledgerFaultLater() async throws {
    let behaviours = try await open()
    let double = await register(behaviours)
    try await behaviours.load([PatchFixture.signed(PatchFixture.document())])
    let obstacle = ledger + ".new"
    try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
    #expect(try await double(21) == 42)
    #expect(await behaviours.ledgerFault != nil)
    try FileManager.default.removeItem(atPath: obstacle)
    #expect(try await double(21) == 42)
    #expect(await behaviours.ledgerFault == nil)
  }

  @Test("a folder delivers its patches; other files, folders and too large ones are passed over")
  func folder() async throws {
    let behaviours = try await open()
    _ = await register(behaviours)
    let folder = directory.file("delivered")
    try FileManager.default.createDirectory(
      at: folder.appending(path: "sub.ferrypatch"), withIntermediateDirectories: true)
    let patch = PatchFixture.signed(PatchFixture.document())
    try Data(patch + [0x0A]).write(to: folder.appending(path: "double.ferrypatch"))
    try Data(patch).write(to: folder.appending(path: "readme.txt"))
    let large = Data(repeating: 0x20, count: PatchDocumentLimits.standard.documentBytes + 1)
    try large.write(to: folder.appending(path: "large.ferrypatch"))
    #expect(mkfifo(folder.appending(path: "pipe.ferrypatch").path, 0o600) == 0)
    let report = try await behaviours.load(folder: folder.path)
    #expect(report.loaded.map(\.source) == [folder.path + "/double.ferrypatch"])
    #expect(
      report.refused == [
        .init(
          source: folder.path + "/large.ferrypatch",
          reason: .unreadable("it has more than 1048576 bytes")),
        .init(
          source: folder.path + "/pipe.ferrypatch", reason: .unreadable("it is no regular file")),
        .init(
          source: folder.path + "/sub.ferrypatch", reason: .unreadable("it is no regular file")),
      ])
    await #expect(throws: PatchError.self) {
      try await behaviours.load(folder: folder.path + "/absent")
    }
    #expect(await behaviours.status.map(\.patch) == [5])
  }
}
