import Ferry

/// The example of downloads in Documentation/library.md, line by line; `DocumentedDownloadsTests`
/// compares the lines.
func documentedDownloads(url: String, folder: String) async throws {
  let queue = try await DownloadQueue.open("\(folder)/downloads.db")
  let index = Download(url, to: "\(folder)/index.json")
  let film = Download(
    url, to: "\(folder)/film.mp4", userInfo: ["lesson": 7], after: [index.id])
  try await queue.add(index, film)
  for await status in film.updates() {
    print("\(status.state): \(status.progress.bytesDone) bytes")
  }
  let file = try await film.finished()
  print("\(file.path) has \(file.size) bytes")
  await queue.close()
}
