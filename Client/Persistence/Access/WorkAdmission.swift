/// The reason why work on a file does not begin, or has ended early.
package enum StoppedWork: Error, Sendable, Equatable {
  /// The program may lose its processor at any time, and must not hold a lock on the file.
  case suspended
  /// The file is closed.
  case closed
}

/// Decides whether work on a file may begin; pure. A closed file stays closed.
struct WorkAdmission: Equatable {
  /// The reason why no work begins; `nil` while it may.
  private(set) var refusal: StoppedWork?

  /// Stops work for a while. Returns whether work under way has to end.
  mutating func suspend() -> Bool {
    guard refusal == nil else { return false }
    refusal = .suspended
    return true
  }

  /// Admits work again. Returns whether work may begin that has waited for this.
  mutating func resume() -> Bool {
    guard refusal == .suspended else { return false }
    refusal = nil
    return true
  }

  /// Stops all work. Returns whether work under way has to end.
  mutating func close() -> Bool {
    defer { refusal = .closed }
    return refusal == nil
  }
}
