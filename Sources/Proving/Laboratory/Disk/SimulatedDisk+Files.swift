/// A folder with all content, or a database file with the files that belong to it.
struct Place {
  let path: String

  init(_ prefix: String) {
    var prefix = absolutePath(prefix)
    while prefix.hasSuffix("/") { prefix.removeLast() }
    path = prefix
  }

  func contains(_ other: String) -> Bool {
    guard other.hasPrefix(path) else { return false }
    let rest = other.dropFirst(path.count)
    return rest.isEmpty || rest.hasPrefix("/") || rest == "-wal" || rest == "-journal"
  }
}

/// Returns the path from the root; a relative one begins there.
func absolutePath(_ path: String) -> String { path.hasPrefix("/") ? path : "/" + path }

func folder(of path: String) -> String {
  path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
}

extension SimulatedDisk {
  /// Returns the full paths of the files under `prefix` (as in ``kill(under:)``), sorted.
  package func fileNames(under prefix: String) -> [String] { paths(in: Place(prefix)) }

  /// Returns the bytes of a file as they are now; `nil` when there is none.
  package func bytes(of path: String) -> [UInt8]? { files[absolutePath(path)]?.bytes.copied() }

  /// Copies the files under `prefix`, byte for byte as they are now, to the same names under
  /// `other`.
  ///
  /// The result is a backup of a file in use, or a clone of a device's files. All files under
  /// `other` are removed first; the copies are durable.
  package func copyFiles(under prefix: String, to other: String) {
    let source = Place(prefix)
    let target = Place(other)
    precondition(
      !source.contains(target.path) && !target.contains(source.path), "a copy into itself")
    removeFiles(under: other)
    for path in paths(in: source) {
      guard let original = files[path] else { continue }
      let copy = target.path + path.dropFirst(source.path.count)
      files[copy] = StoredFile(path: copy, copyOf: original)
    }
    for original in folders(in: source) {
      let copy = target.path + original.place.dropFirst(source.path.count)
      folders[copy] = SimulatedFolders(place: copy, on: self, copyOf: original)
    }
  }

  /// Returns a separate disk with copies of the files under `prefix`, as they are now. Nothing done
  /// there changes this disk or draws from this disk's randomness.
  package func copy(under prefix: String) -> SimulatedDisk {
    let clock = clock
    let other = SimulatedDisk(name: "copy", clock: clock, random: { 0 })
    for path in paths(in: Place(prefix)) {
      other.files[path] = files[path].map { StoredFile(path: path, copyOf: $0) }
    }
    return other
  }

  /// Kills the process under `prefix` and removes the files there for good.
  package func removeFiles(under prefix: String) {
    kill(under: prefix)
    let place = Place(prefix)
    for path in paths(in: place) { files.removeValue(forKey: path)?.isLinked = false }
    nameChanges.forget(in: place)
    for folders in folders(in: place) { self.folders[folders.place] = nil }
  }

  func paths(in place: Place) -> [String] {
    files.keys.filter { place.contains($0) }.sorted()
  }
}
