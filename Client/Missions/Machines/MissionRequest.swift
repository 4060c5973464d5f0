import FerryProtocol

/// The missions of a request: those to fetch, with those that come first.
enum MissionRequest {
  /// Returns the missions to fetch, dependencies first, except in circles.
  ///
  /// A requested mission is fetched in the catalogue's version; for a dependency any version will
  /// do.
  ///
  /// - Parameters:
  ///   - here: complete versions in use.
  ///   - isPartial: true to leave missions that can never start to the queue: it fails them with
  ///     the reason and continues with the others. Otherwise such a mission fails the whole
  ///     request.
  static func plan(
    _ ids: [MissionID], catalogue: [MissionID: MissionRecord],
    here: [MissionID: HeldVersion], isPartial: Bool = false
  ) throws(MissionError) -> [MissionRecord] {
    var order: [MissionRecord] = []
    var seen: Set<MissionID> = []
    // The missions to visit, the next one last; each occurs twice, before and after the
    // dependencies.
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
            .dependency, "mission \(id), the predecessor of \(parent), is not in the catalogue")
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
