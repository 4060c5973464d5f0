import Ferry

/// The example of missions in Documentation/missions.md, line by line; `MissionPairTests` compares
/// the lines.
func missionExample(replica: Replica) async throws {
  let missions = try await replica.missionManager()
  let watching = Task {
    for await case .progress(let progress) in missions.events() {
      print("\(progress.id): \(Int(progress.fraction * 100)) %")
    }
  }
  try await missions.download("city-tour")
  for mission in try await missions.waitUntilIdle("city-tour") where mission.isDownloaded {
    print("open \(try await missions.path("city-tour"))/index.html")
  }
  watching.cancel()
}
