import FerryConformance

/// A planned action of a publisher or a user on a mission, known from the seed before the run
/// starts.
package struct PlannedMission: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    // The publisher.
    case publish, retract
    // A device's user.
    case ask, pause, resume, cancel, remove, verify
  }

  /// Names it in shrunk histories.
  package var ordinal: Int
  /// Milliseconds since the start.
  package var at: Int64
  package var kind: Kind
  /// The mission's place among the missions.
  package var mission: Int
  /// The device's place among the devices; not used for the publisher's actions.
  package var device: Int
  /// The seed of the mission's choices.
  package var seed: UInt64

  package var isPublishers: Bool { kind == .publish || kind == .retract }

  /// Draws the actions of all devices and publishers on missions, by time.
  package static func plan(seed: UInt64, options: WorldOptions) -> [PlannedMission] {
    guard options.missions > 0 else { return [] }
    var random = SeededRandom(seed, "mission-plan")
    var planned: [PlannedMission] = []
    let length = options.seconds * 1_000
    func add(_ kind: Kind, _ at: Int, _ mission: Int, _ device: Int) {
      guard at < length else { return }
      planned.append(
        PlannedMission(
          ordinal: 0, at: Int64(at), kind: kind, mission: mission, device: device,
          seed: random.next()))
    }
    for mission in 0..<options.missions {
      var at = random.below(length / 6)
      add(.publish, at, mission, 0)
      for _ in 0..<random.below(5) {
        at += 1 + random.below(length / 3)
        add(random.chance(1, in: 4) ? .retract : .publish, at, mission, 0)
      }
      for device in 0..<options.devices
      where options.space(ofMission: mission) == device % options.spaces {
        guard random.chance(3, in: 4) else { continue }
        let asked = length / 6 + random.below(length * 5 / 6)
        add(.ask, asked, mission, device)
        for _ in 0..<random.below(6) {
          // Half of all users change their minds while it is being fetched.
          let reach = random.chance(1, in: 2) ? min(5_000, length - asked) : length - asked
          add(whim(&random), asked + random.below(max(1, reach)), mission, device)
        }
      }
    }
    planned.sort { ($0.at, $0.kind.rawValue, $0.device) < ($1.at, $1.kind.rawValue, $1.device) }
    for index in planned.indices { planned[index].ordinal = index }
    return planned
  }

  /// Users ask more often than they change their minds.
  private static func whim(_ random: inout SeededRandom) -> Kind {
    let whims: [Kind] = [
      .ask, .ask, .ask, .pause, .resume, .resume, .cancel, .remove, .verify, .verify,
    ]
    return whims[random.below(whims.count)]
  }
}

extension WorldOptions {
  /// Returns the place of a mission's space.
  func space(ofMission mission: Int) -> Int { mission % min(spaces, devices) }
}
