import FerryProtocol
import Testing

@testable import FerryMissions

// Versions that need a later shell.
extension BundlesTests {
  @Test("a version that this shell cannot run is neither offered nor activated, even by its name")
  func shell() async throws {
    publish("1")
    publish("2", minShell: "1.5")
    let device = try await Device(shelf)
    let old = try await bundles(on: device)
    #expect(try await old.fetch(board) == version("1"))
    do {
      try await old.fetch(board, version: version("2"))
      Issue.record("it was fetched")
    } catch {
      #expect(error.kind == .shellTooOld)
    }
    let new = try await bundles(on: device, shell: "2")
    #expect(try await new.update(board))
    #expect(try await new.active(board)?.version == version("2"))
    // The program is replaced by an earlier one.
    #expect(try await old.update(board))
    #expect(try await old.active(board)?.version == version("1"))
  }

  @Test("an earlier shell shows the last good version that it runs, also without a connection")
  func downgrade() async throws {
    publish("1")
    let device = try await Device(shelf)
    let reports = Reports()
    let new = try await bundles(on: device, shell: "2", reports: reports)
    #expect(try await new.update(board))
    try await new.confirm(try #require(try await new.active(board)))
    publish("3", minShell: "2")
    #expect(try await new.update(board))
    try await new.confirm(try #require(try await new.active(board)))
    // This version is the best one for an earlier shell, and the version's files are not here.
    publish("2")
    let old = try await bundles(on: device, shell: "1", reports: reports)
    await #expect { try await old.activate(board) } throws: { error in
      (error as? BundleError)?.kind == .notDownloaded
    }
    let shown = try #require(try await old.active(board))
    #expect(shown.version == version("1") && shown.isConfirmed)
    #expect(try await page(shown) == "<h1>1</h1>")
    await old.synced()
    #expect(reports.all.map(\.outcome) == [.success, .success])
    // The later program again.
    #expect(try await new.activate(board).version == version("3"))
    // Without a version to return to, the one in use stays.
    publish("2", isWithdrawn: true)
    publish("1", isWithdrawn: true)
    #expect(try await old.activate(board).version == version("3"))
  }

  @Test("a version that fails does not give way to one that needs a later shell")
  func failureAfterDowngrade() async throws {
    publish("1", minShell: "2")
    let device = try await Device(shelf)
    let new = try await bundles(on: device, shell: "2")
    #expect(try await new.update(board))
    try await new.confirm(try #require(try await new.active(board)))
    publish("2")
    let old = try await bundles(on: device, shell: "1")
    #expect(try await old.update(board))
    let shown = try #require(try await old.active(board))
    #expect(shown.version == version("2"))
    #expect(try await old.fail(shown, reason: "silent") == nil)
    #expect(try await old.active(board) == nil)
  }

  @Test("this shell runs versions that name it or an earlier one, and no others")
  func minShell() async throws {
    for (number, minShell) in ["0.9", "1", "1.0", "1.1", "2"].enumerated() {
      publish("\(number)", minShell: minShell)
    }
    let device = try await Device(shelf)
    let bundles = Bundles(
      missions: device.manager,
      store: try await BundleStore.open(device.folder.path + "/bundles.db"),
      in: BundleSurroundings(
        device: { () async throws(MissionError) in DeviceID(UniqueID(high: 1, low: 2)) },
        report: { _ in }))
    #expect(bundles.options.shell == .shell)
    let offered = try await bundles.versions(of: board).filter(\.isOffered)
    #expect(offered.map(\.minShell) == [version("0.9"), version("1")])
  }
}
