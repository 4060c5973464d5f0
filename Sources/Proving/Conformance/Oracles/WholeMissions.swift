import FerryProtocol

/// Checks that a complete version is exactly one published version at every moment.
///
/// This holds also right after the end of a process or a loss of power: all files of one manifest
/// and no other, byte for byte. All devices have the same files under one number. After all has
/// drained, a complete version's content is all there and matches its name, even if shared content
/// was removed elsewhere.
package struct WholeMissions: MissionOracle {
  package static let name = "whole-missions"

  private struct Place: Hashable {
    var space: SpaceName
    var mission: MissionID
  }

  private struct Number: Hashable {
    var place: Place
    var version: Int64
  }

  private var published: [Place: [[String: ContentHash]]] = [:]
  private var seen: [Number: (files: [String: ContentHash], device: String)] = [:]

  /// True if the server may assign a number a second time.
  private var mayRepeat = false

  package init() {}

  package mutating func see(_ event: MissionRunEvent) -> [Violation] {
    switch event {
    case .publishing(let space, let mission, let items):
      published[Place(space: space, mission: mission), default: []].append(
        items.mapValues(\.hash))
    case .looked(let device, let space, let evidence):
      return evidence.versions.filter { $0.isComplete || $0.isActive }
        .compactMap { fault(of: $0, in: space, on: device) }
        .map { Violation(oracle: Self.name, "\(device): \($0)") }
    case .serverWentBack: mayRepeat = true
    default: break
    }
    return []
  }

  private mutating func fault(
    of version: MissionEvidence.Version, in space: SpaceName, on device: String
  ) -> String? {
    let name = "mission \(version.mission), version \(version.version)"
    guard version.isComplete else { return "\(name) is in use and not complete" }
    guard let files = version.files else { return "\(name) is complete and has no folder" }
    let place = Place(space: space, mission: version.mission)
    guard published[place, default: []].contains(files) else {
      return "\(name) is not a published version: " + difference(files, place)
    }
    if mayRepeat { return nil }
    let number = Number(place: place, version: version.version)
    if let other = seen[number] {
      return other.files == files ? nil : "\(name) differs from the same version on \(other.device)"
    }
    seen[number] = (files, device)
    return nil
  }

  /// Describes the difference to the last published files.
  private func difference(_ files: [String: ContentHash], _ place: Place) -> String {
    guard let last = published[place]?.last else { return "there is none" }
    let missing = last.keys.filter { files[$0] == nil }.sorted()
    let other = last.keys.filter { files[$0] != nil && files[$0] != last[$0] }.sorted()
    let extra = files.keys.filter { last[$0] == nil }.sorted()
    return
      "compared with the last version, \(missing) are missing, \(other) differ, \(extra) are extra"
  }

  package mutating func judge(_ final: FinalMissionEvidence) -> [Violation] {
    final.devices.flatMap { device in
      let complete = device.store.versions.filter(\.isComplete)
      let needed = Set(complete.flatMap { ($0.files ?? [:]).values.map(\.description) })
      // Files of a failed attempt are removed later, and never trusted.
      let wrong = device.store.objects.filter {
        $0.name != $0.hash.description && needed.contains($0.name)
      }.map { "content \($0.name) is \($0.hash)" }
      let there = Set(device.store.objects.map(\.name))
      let missing = complete.flatMap { version in
        (version.files ?? [:]).filter { !there.contains($0.value.description) }.keys.sorted()
          .map { "mission \(version.mission), version \(version.version): \($0) is not kept" }
      }
      return (wrong + missing).map { Violation(oracle: Self.name, "\(device.name): \($0)") }
    }
  }
}
