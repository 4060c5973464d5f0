import FerryTestSupport
import Synchronization

@testable import FerryShell

/// Services called by pages of tests.
enum PageProbes {
  static let echo = Service(
    "probe.echo", permission: "repeats", argument: .any, result: .any
  ) { $0.argument }

  static let fails = Service(
    "probe.fails", permission: "fails", argument: .any, result: .any
  ) { _ in throw ServiceError("sold_out", "there is none left") }

  /// Answers only when the call is cancelled.
  static func slow(_ begun: SharedFlag, _ ended: SharedFlag) -> Service {
    Service("probe.slow", permission: "waits", argument: .any, result: .any) { _ in
      begun.set()
      defer { ended.set() }
      try await Task.sleep(for: .seconds(3_600))
      return .null
    }
  }

  /// Answers once a flag is set.
  static func awaits(_ flag: SharedFlag) -> Service {
    Service("probe.awaits", permission: "waits", argument: .any, result: .any) { _ in
      try await flag.wait()
      return .null
    }
  }

  /// Never has a result; sets a flag when it is followed.
  static func silent(_ followed: SharedFlag) -> Service {
    Service(watching: "probe.silent", permission: "waits", argument: .any, result: .any) { _ in
      followed.set()
      return AsyncThrowingStream { _ in }
    }
  }

  /// Counts, one number for each that was taken.
  static func count(_ ended: SharedFlag) -> Service {
    Service(watching: "probe.count", permission: "counts", argument: .any, result: .any) { call in
      AsyncThrowingStream { continuation in
        continuation.onTermination = { _ in ended.set() }
        let task = Task {
          for number in 1...1_000_000 {
            continuation.yield(.integer(Int64(number)))
            try await Task.sleep(for: .milliseconds(5))
          }
        }
        _ = task
      }
    }
  }
}

/// A flag that a service sets, or waits for.
final class SharedFlag: Sendable {
  private let flag = Atomic(false)
  private let name: String
  init(_ name: String) { self.name = name }
  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
  func wait() async throws {
    try await eventually(name) { isSet }
  }
}
