/// The non-durable creations and deletions of names, oldest first.
struct NameChanges {
  private enum Change {
    case created
    case deleted
  }

  private var entries: [(change: Change, folder: String, file: StoredFile)] = []

  mutating func recordCreation(_ file: StoredFile) {
    entries.append((.created, folder(of: file.path), file))
  }

  mutating func recordDeletion(_ file: StoredFile) {
    entries.append((.deleted, folder(of: file.path), file))
  }

  /// Makes the changes in one folder durable.
  mutating func sync(folder: String) {
    if !entries.isEmpty { entries.removeAll { $0.folder == folder } }
  }

  /// Forgets changes in `place`: the names there are durable as they are.
  mutating func forget(in place: Place) {
    entries.removeAll { place.contains($0.file.path) }
  }

  /// Takes back the changes in `place` from a random one on.
  mutating func losePower(
    in place: Place, files: inout [String: StoredFile], random: () -> UInt64
  ) {
    let affected = entries.filter { place.contains($0.file.path) }
    guard !affected.isEmpty else { return }
    let kept = Int(random() % UInt64(affected.count + 1))
    for entry in affected.dropFirst(kept).reversed() {
      let path = entry.file.path
      switch entry.change {
      case .created:
        files.removeValue(forKey: path)?.isLinked = false
      case .deleted:
        files[path] = entry.file
        entry.file.isLinked = true
      }
    }
    forget(in: place)
  }
}
