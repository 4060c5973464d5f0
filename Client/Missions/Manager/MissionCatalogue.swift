import FerryProtocol

/// Where a manager learns which missions there are: the replica, in the product.
public protocol MissionCatalogue: Sendable {
  /// The space that the missions belong to.
  func space() async throws(MissionError) -> SpaceName

  /// Every mission that is published, by its name.
  func missions() async throws(MissionError) -> [MissionRecord]
}
