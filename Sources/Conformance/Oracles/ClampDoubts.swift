import FerryProtocol

/// Violations that only the history can settle. The server gives a time from the far future its own,
/// in the order of arrival: that keeps a device's writes in their order, but not those of two copies
/// of one file, of which one sends late what the other has sent already in a later operation.
struct ClampDoubts {
  private var branched: Set<String> = []
  private var held: [(device: String, violation: Violation)] = []

  /// A copy was made of the device's file, or one is put in its place.
  mutating func branch(_ device: String) { branched.insert(device) }

  /// The violation, unless it is of a device's beat that two files have held: then it is kept back.
  mutating func unlessDoubtful(_ violation: Violation, beatOf device: String) -> [Violation] {
    guard branched.contains(device) else { return [violation] }
    held.append((device, violation))
    return []
  }

  /// Those kept back of devices whose beats were never clamped.
  func settled(by server: ServerEvidence) -> [Violation] {
    guard !held.isEmpty else { return [] }
    let clamped = Set(
      server.history.lazy.filter { $0.key.table == "beats" && $0.time < $0.id.value.timestamp }
        .map(\.key.record.text))
    return held.filter { !clamped.contains($0.device) }.map(\.violation)
  }
}
