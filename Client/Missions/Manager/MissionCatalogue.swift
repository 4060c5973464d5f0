import FerryProtocol

/// The manager's source of missions: in an application, the replica.
public protocol MissionCatalogue: Sendable {
  /// Returns the space of the missions.
  func space() async throws(MissionError) -> SpaceName

  /// Returns every published mission, by name.
  func missions() async throws(MissionError) -> [MissionRecord]
}
