import FerryProtocol

/// What asking for missions means: which ones to fetch, those that come first included.
enum MissionRequest {
  /// Missions to fetch, none before what it waits for unless they wait for each other.
  ///
  /// A mission that is asked for is fetched in the catalogue's version; for one that merely comes
  /// first any version will do.
  ///
  /// - Parameters:
  ///   - here: complete versions in use.
  ///   - isPartial: what can never start is left to the queue, which fails it with the reason and
  ///     goes on with the others; without it nothing is asked for then.
  static func plan(
    _ ids: [MissionID], catalogue: [MissionID: MissionRecord],
    here: [MissionID: HeldVersion], isPartial: Bool = false
  ) throws(MissionError) -> [MissionRecord] {
    var order: [MissionRecord] = []
    var seen: Set<MissionID> = []
    // What is to be looked at, the next one last; twice: before and after what comes first.
    var open: [(id: MissionID, parent: MissionID?, isAfter: Bool)] =
      ids.reversed().map { ($0, nil, false) }
    let asked = Set(ids)
    while let (id, parent, isAfter) = open.popLast() {
      if isAfter {
        if let record = catalogue[id] { order.append(record) }
        continue
      }
      guard seen.insert(id).inserted else { continue }
      guard let record = catalogue[id] else {
        if here[id] != nil || isPartial { continue }
        if let parent {
          throw MissionError(
            .dependency, "mission \(id), which comes before \(parent), is not in the catalogue")
        }
        throw MissionError(.notFound, "there is no mission \(id) in the catalogue")
      }
      if let held = here[id], held.isCurrent(record) || !asked.contains(id) { continue }
      open.append((id, parent, true))
      for first in record.after.reversed() { open.append((first, id, false)) }
    }
    return order
  }
}
