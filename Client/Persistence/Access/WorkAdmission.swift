/// The reason why work on a file does not begin, or has ended early.
package enum StoppedWork: Error, Sendable, Equatable {
  /// The program may lose the processor at any time, and must not hold a lock on the file.
  case suspended
  /// The file is closed.
  case closed
}

/// Decides whether work on a file may begin; pure. A closed file stays closed.
struct WorkAdmission: Equatable {
  /// The reason why no work begins; `nil` while it may.
  private(set) var refusal: StoppedWork?

  /// Stops work for a while. Returns true if work under way must end.
  mutating func suspend() -> Bool {
    guard refusal == nil else { return false }
    refusal = .suspended
    return true
  }

  /// Admits work again. Returns true if waiting work may begin now.
  mutating func resume() -> Bool {
    guard refusal == .suspended else { return false }
    refusal = nil
    return true
  }

  /// Stops all work. Returns true if work under way must end.
  mutating func close() -> Bool {
    defer { refusal = .closed }
    return refusal == nil
  }
}
