import FerryProtocol

/// Violations that only the history can settle.
///
/// The server replaces a time from the far future by its own, in the order of arrival. This
/// preserves the order of a device's writes, but not of those from two copies of one file. One copy
/// may send an operation late that the other has sent already in a later operation.
struct ClampedStamps {
  private var branched: Set<String> = []
  private var held: [(device: String, violation: Violation)] = []

  /// Records a copy of the device's file, or a replacement by a copy.
  mutating func branch(_ device: String) { branched.insert(device) }

  /// Returns the violation, or defers it if it is about a device's beat held by two files.
  mutating func unlessDoubtful(_ violation: Violation, beatOf device: String) -> [Violation] {
    guard branched.contains(device) else { return [violation] }
    held.append((device, violation))
    return []
  }

  /// Returns the deferred violations of devices whose beats were never clamped.
  func confirmed(by server: ServerEvidence) -> [Violation] {
    guard !held.isEmpty else { return [] }
    let clamped = Set(
      server.history.lazy.filter { $0.key.table == "beats" && $0.time < $0.id.value.timestamp }
        .map(\.key.record.text))
    return held.filter { !clamped.contains($0.device) }.map(\.violation)
  }
}
