import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

@Suite("A private PostgreSQL cluster", .hangLimit)
struct PostgresClusterTests {
  private static let roleVariable = "FERRY_TEST_CLUSTER_OWNER"

  @Test("a cluster and its files are removed when its owner is released")
  func removedWithOwner() async throws {
    var cluster: PostgresCluster? = try PostgresCluster()
    let directory = try #require(cluster?.directory)
    let url = try #require(try cluster?.createDatabase())
    #expect(FileManager.default.fileExists(atPath: directory))
    cluster = nil
    #expect(!FileManager.default.fileExists(atPath: directory))
    let pool = try PostgresPool(url: url, connections: 1)
    await #expect(throws: PostgresError.self) { try await pool.run { _ in } }
  }

  @Test("a cluster ends when the process that owns it is killed with SIGKILL")
  func removedAfterKill() async throws {
    let owner = try startOwner("hold")
    let directory = try await clusterDirectory(of: owner)
    #expect(FileManager.default.fileExists(atPath: "\(directory)/data/PG_VERSION"))
    owner.send(SIGKILL)
    // The watchdog shares the owner's standard error, so the watchdog's end is waited for, too.
    #expect(try await owner.exitStatus() == .killed(signal: SIGKILL))
    #expect(!FileManager.default.fileExists(atPath: directory))
  }

  @Test("a cluster ends when the process that owns it exits")
  func removedAtExit() async throws {
    let owner = try startOwner("leave")
    let directory = try await clusterDirectory(of: owner)
    #expect(try await owner.exitStatus() == .exited(0))
    #expect(!FileManager.default.fileExists(atPath: directory))
  }

  /// Runs this very test program again, with the next test only.
  private func startOwner(_ role: String) throws -> ChildProcess {
    try ChildProcess(
      URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(),
      ["--testing-library", "swift-testing", "--filter", "ownsACluster"],
      environment: [Self.roleVariable: role, "FERRY_TEST_POSTGRES": ""])
  }

  private func clusterDirectory(of owner: ChildProcess) async throws -> String {
    let line = try await owner.line { $0.hasPrefix("cluster in ") }
    return String(line.dropFirst("cluster in ".count))
  }

  @Test(
    "(The process for the tests above.)",
    .enabled(if: ProcessInfo.processInfo.environment[roleVariable] != nil))
  func ownsACluster() async throws {
    let cluster = try PostgresCluster.shared()
    print("cluster in \(cluster.directory ?? "?")")
    fflush(nil)
    if ProcessInfo.processInfo.environment[Self.roleVariable] == "hold" {
      for await _ in AsyncStream(Void.self, { _ in }) {}
    }
  }
}
