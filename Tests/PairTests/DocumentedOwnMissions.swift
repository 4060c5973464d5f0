import Ferry

/// The example of composed missions in Documentation/missions.md, line by line;
/// `DocumentedOwnMissionsTests` compares the lines.
func ownMissionExample(folder: String, url: String, api: String) async throws {
  let missions = try await OwnMissions.open(folder)
  let course = OwnMission(
    "knots", title: "Knots", payload: ["course": 7],
    items: [
      .file("film.mp4", from: url, kind: .video),
      .result(
        "lessons.json",
        of: ContentRequest(
          api, headers: ["Accept": "application/json"])),
    ])
  try await missions.add(course)
  let film = try await missions.download(of: "film.mp4", in: "knots")
  try await film?.pause()
  try await film?.resume()
  for mission in try await missions.waitUntilIdle("knots") where mission.isDownloaded {
    let model = try await missions.payload(of: "knots", as: [String: Int].self)
    print("course \(model["course"] ?? 0) is in \(try await missions.path("knots"))")
  }
  await missions.close()
}
