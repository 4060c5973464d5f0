import FerryConformance
import FerryLaboratory
import Foundation

/// The company's developers: they change the tables with Django's migrations, forward and back, while
/// everybody writes.
struct Migrator: Sendable {
  /// The steps, again and again. The first one follows the last one.
  private static let targets = ["0002", "0003", "0004", "0005", "0006", "0007", "0005", "0001"]
  /// Between two steps, in milliseconds.
  private static let pause = 1_000...5_000
  /// The exit code if a migration has not begun: the database was away, or a lock was not free.
  private static let unavailable: Int32 = 75

  let python: URL
  let database: String
  let seed: UInt64
  let collector: Collector
  let chronicle: Chronicle

  /// Migrates until the task is cancelled. A step under way runs to the end.
  func run() async {
    var random = SeededRandom(seed, "migrations")
    var place = 0
    while !Task.isCancelled {
      let milliseconds = Self.pause.lowerBound + random.below(Self.pause.count)
      guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
      let target = Self.targets[place % Self.targets.count]
      // A process is not killed by the end of the faults.
      let isDone = await Task { await migrate(to: target) }.value
      if isDone { place += 1 }
    }
  }

  /// Returns `true` if the tables are at the target.
  private func migrate(to target: String) async -> Bool {
    do {
      let script = try ExampleFiles.find("Backend/migrate.py")
      let ended = try await ChildProcess.run(
        python, ["-B", script.path, "--database", database, target])
      switch ended.status {
      case .exited(0):
        chronicle.append("migrations", "at \(target)")
        await collector.count { $0.migrations += 1 }
        return true
      case .exited(Self.unavailable):
        chronicle.append("migrations", "not at \(target): \(ended.error.prefix(200))")
      default:
        await collector.add(
          Violation(
            oracle: "migrations", "to \(target): \(ended.status) \(ended.error.suffix(600))"))
      }
    } catch {
      await collector.add(Violation(oracle: "migrations", "to \(target): \(error)"))
    }
    return false
  }
}
