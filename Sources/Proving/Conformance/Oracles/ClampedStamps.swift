import FerryProtocol

/// Violations that only the history can settle.
///
/// The server replaces a time from the far future by its own, in the order of arrival. That keeps a
/// device's writes in their order, but not those of two copies of one file. One copy may send an
/// operation late that the other has sent already in a later operation.
struct ClampedStamps {
  private var branched: Set<String> = []
  private var held: [(device: String, violation: Violation)] = []

  /// Notes that a copy was made of the device's file, or that a copy replaced it.
  mutating func branch(_ device: String) { branched.insert(device) }

  /// Returns the violation, or defers it if it is of a device's beat that two files have held.
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
