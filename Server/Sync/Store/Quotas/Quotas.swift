/// The limits of one principal, and of one space, on a server (SPEC.md §10).
///
/// Principals of one account (``Principal/account``) count as one. Each limit is far above honest
/// use. It prevents one member of a space from filling the disk, or the memory, shared by all of
/// them. `Int64.max` is no limit.
package struct Quotas: Sendable, Equatable {
  /// Bytes of the records by which one principal made a space grow.
  package var principalBytes: Int64 = 64 << 30
  /// Records by which one principal made a space grow.
  package var principalRecords: Int64 = 50_000_000
  /// Bytes of all records of a space.
  package var spaceBytes: Int64 = 256 << 30
  /// All records of a space.
  package var spaceRecords: Int64 = 100_000_000
  /// Bytes written to a space's history by one principal in a day.
  package var dailyBytes: Int64 = 64 << 30
  /// Bytes written to a space's history by all principals in a day. Above it, principals with less
  /// than a share of it go on.
  package var spaceDailyBytes: Int64 = 256 << 30
  /// The shares of a space's quotas.
  static let sharesOfSpace: Int64 = 64
  /// Buffered packets of one principal in a space, of all its devices.
  package var bufferedPackets: Int64 = 5_000
  /// Bytes of those packets.
  package var bufferedBytes: Int64 = 512 << 20
  /// Buffered packets of all principals in a space.
  package var spaceBufferedPackets: Int64 = 50_000
  /// Bytes of those packets.
  package var spaceBufferedBytes: Int64 = 4 << 30
  /// Device identifiers owned by one principal in a space.
  package var devices: Int64 = 10_000
  /// Device identifiers of a space.
  package var spaceDevices: Int64 = 100_000
  /// Spaces created by one principal.
  package var spaces: Int64 = 10_000
  /// Tokens created by one principal.
  package var tokens: Int64 = 10_000
  /// Open event streams of one principal on one server.
  package var streams = 1_000
  /// Bytes of a space's finished uploads, named by no mission yet.
  package var unpublishedBytes: Int64 = 256 << 30
  /// The number of those uploads: two missions of the largest size.
  package var unpublishedFiles: Int64 = 200_000

  /// Creates the defaults.
  package init() {}

  package static let standard = Quotas()

  /// Returns `true` if a principal may add to the use of a space by all principals.
  ///
  /// All of them may use a half of the limit. The other half is for principals with less than a
  /// share, so a few of them never keep out the others.
  ///
  /// - Parameters:
  ///   - own: the use by the principal's account before.
  ///   - all: the use by all accounts before.
  ///   - limit: the limit of all, which is never exceeded.
  static func admits(_ added: Int64, own: Int64, all: Int64, limit: Int64) -> Bool {
    guard all <= limit - added else { return false }
    return all <= limit / 2 - added || own < max(1, limit / sharesOfSpace)
  }
}
