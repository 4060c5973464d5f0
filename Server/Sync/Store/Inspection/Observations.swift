import FerryProtocol

/// The last contact of a device with a space.
package struct DeviceSighting: Sendable, Equatable {
  package let space: Int64
  package let device: DeviceID
  package let principal: Principal
  /// Milliseconds since 1970.
  package var at: Int64
  /// The place up to which the device knows the space's changes; `nil` if the request did not show
  /// it.
  package var reached: SequenceNumber?
  /// The client's own name and version; `nil` if it sent none.
  package var client: String?

  package init(
    space: Int64, device: DeviceID, principal: Principal, at: Int64, reached: SequenceNumber?,
    client: String?
  ) {
    (self.space, self.device, self.principal) = (space, device, principal)
    (self.at, self.reached, self.client) = (at, reached, client)
  }
}

/// A packet, or an operation of a packet, refused by the server.
package struct Rejection: Sendable, Equatable {
  /// Identifies the rejected request. The same fault, sent again, is counted and not listed again.
  package let subject: String
  /// When it was refused first and last, milliseconds since 1970.
  package var firstAt: Int64
  package var lastAt: Int64
  package var times: Int64
  /// The code of the refusal or the problem.
  package let code: String
  /// The reason, for people.
  package let detail: String
  package let principal: String
  /// `nil` if the packet could not be read.
  package let device: DeviceID?
  /// `nil` if the whole packet was refused.
  package let key: RecordKey?

  /// Stored bytes of a reason.
  package static let detailBytes = 1_000
  /// Stored rejections of one space, the newest.
  package static let keptCount = 1_000

  package init(
    subject: String, firstAt: Int64, lastAt: Int64, times: Int64 = 1, code: String,
    detail: String, principal: String, device: DeviceID?, key: RecordKey? = nil
  ) {
    (self.subject, self.firstAt, self.lastAt, self.times) = (subject, firstAt, lastAt, times)
    (self.code, self.principal, self.device, self.key) = (code, principal, device, key)
    self.detail = String(decoding: detail.utf8.prefix(Self.detailBytes), as: UTF8.self)
  }
}

/// The length of the intervals in which a space's activity is counted.
package enum ActivityUnit: String, Sendable, CaseIterable {
  case minute
  case hour

  /// Milliseconds.
  package var milliseconds: Int64 { self == .minute ? 60_000 : 3_600_000 }

  /// The retention of the counts, in milliseconds: a day of minutes, 90 days of hours.
  package var keptMilliseconds: Int64 { (self == .minute ? 1 : 90) * 86_400_000 }

  /// Returns the beginning of the interval of a moment.
  package func start(of moment: Int64) -> Int64 { moment - moment % milliseconds }
}

/// Counts of one interval of a space.
package struct ActivityCount: Sendable, Equatable {
  /// The beginning of the interval, milliseconds since 1970.
  package let at: Int64
  /// Applied operations.
  package var operations: Int64 = 0
  /// Values that lost a conflict.
  package var conflicts: Int64 = 0
  /// Refused packets.
  package var rejected: Int64 = 0

  package init(at: Int64, operations: Int64 = 0, conflicts: Int64 = 0, rejected: Int64 = 0) {
    (self.at, self.operations) = (at, operations)
    (self.conflicts, self.rejected) = (conflicts, rejected)
  }

  static func += (sum: inout ActivityCount, part: ActivityCount) {
    sum.operations += part.operations
    sum.conflicts += part.conflicts
    sum.rejected += part.rejected
  }
}

/// The observations of a server since it last wrote them down.
package struct Observations: Sendable, Equatable {
  /// By space and device, each device once.
  package var sightings: [DeviceSighting] = []
  /// By space; each subject once.
  package var rejections: [(space: Int64, rejection: Rejection)] = []
  /// By space, counts of minutes.
  package var activity: [(space: Int64, count: ActivityCount)] = []

  package init() {}

  package var isEmpty: Bool { sightings.isEmpty && rejections.isEmpty && activity.isEmpty }

  /// The spaces with an observation, in order.
  package var spaces: [Int64] {
    Set(sightings.map(\.space) + rejections.map(\.space) + activity.map(\.space)).sorted()
  }

  package static func == (one: Observations, other: Observations) -> Bool {
    one.sightings == other.sightings
      && one.rejections.elementsEqual(other.rejections) { $0 == $1 }
      && one.activity.elementsEqual(other.activity) { $0 == $1 }
  }
}
