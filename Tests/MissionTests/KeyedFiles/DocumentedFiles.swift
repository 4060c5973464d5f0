import FerryMissions

/// The example of Documentation/files.md, line by line; `DocumentedFilesTests` compares the lines.
func example(folder: String) async throws {
  let options = FileStoreOptions(bytesMax: 512 << 20, overflow: .removeLeastRecentlyUsed)
  let files = try await FileStore.open(folder, options: options)

  let film = "https://example.org/film.mp4"
  try await files.put(Array("a film".utf8), for: film)
  print("\(files.path(for: film)) has \(try await files.file(film)?.size ?? 0) bytes")

  let reader = try await files.open(film)
  var offset: Int64 = 0
  while offset < reader.file.size {
    let part = try await reader.read(from: offset, count: 1 << 20)
    offset += Int64(part.count)
  }

  if try await files.check(film) != .intact { try await files.remove(film) }
  for file in try await files.list(prefix: "https://example.org/") { print(file.key, file.size) }
  let usage = try await files.usage()
  print("\(usage.count) files, \(usage.bytesOnDisk) bytes, \(usage.bytesFree) bytes are free")
  try await files.removeAll(olderThan: .seconds(30 * 24 * 3600))
}
