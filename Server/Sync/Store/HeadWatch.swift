/// The spaces whose moves a node needs, and the channels that bring them; pure.
///
/// A node needs the moves of a space while the space has listeners, and permanently after it has
/// written to the space. All spaces share ``channelCount`` channels: a node listens to a channel
/// while it has a needed space.
struct HeadWatch {
  /// Channels of one database. PostgreSQL compares each notification with the channels of each
  /// listening session, one by one, so a channel for each space would make notifications slow.
  static var channelCount: UInt64 { 128 }

  /// A change of the channels to listen to.
  enum Change: Equatable {
    case begin(channel: String)
    case end(channel: String)
  }

  private struct Need {
    var watchers = 0
    var isWritten = false
    var isOver: Bool { watchers == 0 && !isWritten }
  }

  private var needs: [Int64: Need] = [:]
  /// Needed spaces of each channel, if it has any.
  private var members: [String: Set<Int64>] = [:]

  /// Returns the channel of a space. Identifiers are given one after another, so their remainders
  /// are even.
  static func channel(of space: Int64) -> String {
    "ferry_head_\(UInt64(bitPattern: space) % channelCount)"
  }

  /// All needed spaces, by identifier.
  var spaces: [Int64] { needs.keys.sorted() }

  func needs(_ space: Int64) -> Bool { needs[space] != nil }

  /// Returns the needed spaces of these channels, by identifier.
  func spaces(on channels: [String]) -> [Int64] {
    channels.flatMap { members[$0] ?? [] }.sorted()
  }

  /// Adds a watcher of a space; each call needs an ``unwatch(_:)``.
  mutating func watch(_ space: Int64) -> Change? { change(space) { $0.watchers += 1 } }

  /// Removes a watcher.
  mutating func unwatch(_ space: Int64) -> Change? {
    guard needs[space, default: Need()].watchers > 0 else { return nil }
    return change(space) { $0.watchers -= 1 }
  }

  /// Records a write of this node to a space.
  mutating func markWritten(_ space: Int64) -> Change? { change(space) { $0.isWritten = true } }

  private mutating func change(_ space: Int64, _ edit: (inout Need) -> Void) -> Change? {
    let (wasNeeded, channel) = (needs[space] != nil, Self.channel(of: space))
    edit(&needs[space, default: Need()])
    if needs[space]?.isOver == true { needs[space] = nil }
    switch (wasNeeded, needs[space] != nil) {
    case (false, true):
      let isFirst = members[channel, default: []].isEmpty
      members[channel, default: []].insert(space)
      return isFirst ? .begin(channel: channel) : nil
    case (true, false):
      members[channel]?.remove(space)
      guard members[channel]?.isEmpty == true else { return nil }
      members[channel] = nil
      return .end(channel: channel)
    default: return nil
    }
  }
}
