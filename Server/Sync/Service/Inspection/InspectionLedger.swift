import FerryProtocol

/// The observations of a server before they are stored; pure.
///
/// Everything in it is bounded: a store with failing writes, and senders with invented devices,
/// cost no more memory.
package struct InspectionLedger: Sendable {
  /// Remembered devices, and spaces' intervals.
  static let entriesMax = 10_000
  /// Different faults between two writes; more are only counted.
  static let rejectionsMax = 500

  private struct DeviceKey: Hashable {
    let space: Int64
    let device: DeviceID
  }

  private struct FaultKey: Hashable {
    let space: Int64
    let subject: String
  }

  private struct IntervalKey: Hashable {
    let space: Int64
    let at: Int64
  }

  private var sightings: [DeviceKey: DeviceSighting] = [:]
  /// The devices seen since the last write.
  private var fresh: Set<DeviceKey> = []
  private var rejections: [FaultKey: Rejection] = [:]
  private var counts: [IntervalKey: ActivityCount] = [:]

  package init() {}

  /// Records a device with all changes up to ``DeviceSighting/reached`` applied.
  package mutating func recordPull(_ sighting: DeviceSighting) { record(sighting) }

  /// Records a device after an accepted packet.
  ///
  /// - Parameters:
  ///   - sequences: The places of the operations; `nil` if the packet was not applied now.
  ///   - known: The place up to which the device knew the changes when it sent the packet.
  package mutating func recordPush(
    _ sighting: DeviceSighting, sequences: ClosedRange<SequenceNumber>?, known: SequenceNumber?
  ) {
    var sighting = sighting
    let before = sightings[DeviceKey(space: sighting.space, device: sighting.device)]?.reached
    let reached = max(before ?? 0, known ?? 0)
    // A device knows its own operations. If nothing is between them and the rest, it knows all.
    if let sequences, reached >= sequences.lowerBound - 1 {
      sighting.reached = max(reached, sequences.upperBound)
    }
    record(sighting)
  }

  /// Records a refusal.
  package mutating func record(_ rejection: Rejection, in space: Int64) {
    let key = FaultKey(space: space, subject: rejection.subject)
    if let known = rejections[key] {
      var sum = rejection
      sum.firstAt = min(known.firstAt, rejection.firstAt)
      sum.lastAt = max(known.lastAt, rejection.lastAt)
      sum.times += known.times
      rejections[key] = sum
    } else if rejections.count < Self.rejectionsMax {
      rejections[key] = rejection
    }
  }

  /// Counts activity at a moment.
  package mutating func count(_ activity: ActivityCount, in space: Int64) {
    let start = ActivityUnit.minute.start(of: activity.at)
    let key = IntervalKey(space: space, at: start)
    guard counts[key] != nil || counts.count < Self.entriesMax else { return }
    counts[key, default: ActivityCount(at: start)] += activity
  }

  /// Returns the observations since the last call.
  package mutating func drain() -> Observations {
    var taken = Observations()
    taken.sightings = fresh.compactMap { sightings[$0] }
      .sorted { ($0.space, $0.device) < ($1.space, $1.device) }
    taken.rejections = rejections.map { ($0.key.space, $0.value) }
      .sorted { ($0.0, $0.1.subject) < ($1.0, $1.1.subject) }
    taken.activity = counts.map { ($0.key.space, $0.value) }
      .sorted { ($0.0, $0.1.at) < ($1.0, $1.1.at) }
    (fresh, rejections, counts) = ([], [:], [:])
    return taken
  }

  /// Restores observations that could not be stored.
  package mutating func restore(_ observations: Observations) {
    for sighting in observations.sightings {
      let key = DeviceKey(space: sighting.space, device: sighting.device)
      if sightings[key] != nil { fresh.insert(key) }
    }
    for (space, rejection) in observations.rejections { record(rejection, in: space) }
    for (space, activity) in observations.activity { count(activity, in: space) }
  }

  private mutating func record(_ sighting: DeviceSighting) {
    let key = DeviceKey(space: sighting.space, device: sighting.device)
    var sighting = sighting
    if let known = sightings[key] {
      sighting.reached = sighting.reached ?? known.reached
      sighting.client = sighting.client ?? known.client
      sighting.at = max(sighting.at, known.at)
    } else if sightings.count >= Self.entriesMax {
      sightings = sightings.filter { fresh.contains($0.key) }
      guard sightings.count < Self.entriesMax else { return }
    }
    sightings[key] = sighting
    fresh.insert(key)
  }
}
