import Ferry
import Foundation

/// The app's model of a course.
struct Course: Codable, Sendable {
  var title: String
  var films: [String]
}

/// The courses of a device, each of them here whole or not at all.
struct Shelf: Sendable {
  private let missions: OwnMissions
  private let printing: Task<Void, Never>

  /// Opens the courses in a folder.
  ///
  /// - Parameter shows: whether events are printed.
  static func open(_ folder: String, shows: Bool) async throws -> Shelf {
    let missions = try await OwnMissions.open(folder)
    let events = missions.events()
    let printing = Task {
      for await event in events where shows { show(event) }
    }
    return Shelf(missions: missions, printing: printing)
  }

  /// Composes a course. A course of the same name stays in use until this one is here.
  func add(_ name: String, title: String, films: [(path: String, url: String)]) async throws {
    try await missions.add(
      OwnMission(
        name, title: title, payload: Course(title: title, films: films.map(\.path)),
        items: films.map { .file($0.path, from: $0.url, kind: .video, mediaType: "video/mp4") }))
  }

  /// Waits until no course is being fetched.
  func fetch() async throws {
    for mission in try await missions.list() { try await missions.waitUntilIdle(mission.id.value) }
  }

  /// Prints all courses by their models, and the folders of those that are here.
  func list() async throws {
    for mission in try await missions.list() {
      let name = mission.id.value
      let (course, folder) = try await course(name)
      let films = course.films.joined(separator: " and ")
      Self.print("\(name): \(course.title), \(films): \(folder ?? "not here yet")")
    }
  }

  /// Returns the model and the folder of the same version: the next one may come into use meanwhile.
  private func course(_ name: String) async throws -> (Course, folder: String?) {
    while true {
      let folder = try await folder(name)
      let course: Course = try await missions.payload(of: name)
      if try await folder == self.folder(name) { return (course, folder) }
    }
  }

  private func folder(_ name: String) async throws -> String? {
    try await missions.isDownloaded(name) ? missions.path(name) : nil
  }

  /// Stops all work, which the next process continues.
  func close() async {
    await missions.close()
    await printing.value
  }

  private static func show(_ event: MissionEvent) {
    switch event {
    case .progress(let progress):
      let total = progress.isTotalKnown ? "of \(progress.bytesTotal) " : ""
      Self.print(
        "\(progress.id): \(progress.bytesDone) \(total)bytes, "
          + "\(progress.itemsDone) of \(progress.items) films")
    case .item(let id, let path): Self.print("\(id): \(path) is here")
    case .changed(let id, let state, let reason):
      Self.print("\(id): \(state)" + (reason.map { ", \($0)" } ?? ""))
    case .removed(let id): Self.print("\(id): removed")
    }
  }

  /// Prints a line at once, also into a pipe.
  private static func print(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}
