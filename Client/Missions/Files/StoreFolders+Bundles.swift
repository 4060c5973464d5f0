import FerryPlatform
import FerryProtocol
import Foundation

/// Folders with a version's items under their names.
extension StoreFolders {
  static let buildingPrefix = ".building-"

  func build(_ plan: BundlePlan) throws {
    guard seal == nil else { return }
    let mission = try folder("bundles").making(plan.mission.value)
    let building = Self.buildingPrefix + VersionName.folder(plan.version)
    try mission.removeTree(building)
    do {
      let folder = try mission.making(building)
      try fill(folder, with: plan)
      try check(folder, against: plan)
      try syncTree(folder)
      // A process that ended before it recorded the complete version left this folder.
      try mission.removeTree(VersionName.folder(plan.version))
      try mission.move(building, to: mission, as: VersionName.folder(plan.version))
      try mission.sync()
    } catch {
      try mission.removeTree(building)
      throw error
    }
    try folder("bundles").sync()
  }

  /// Replaces each item's content. The former content stays for as long as possible.
  func repair(_ plan: BundlePlan) throws {
    guard seal == nil else { return }
    let mission = try folder("bundles").making(plan.mission.value)
    guard let folder = try mission.folder(VersionName.folder(plan.version)) else {
      return try build(plan)
    }
    let fresh = Self.buildingPrefix + VersionName.folder(plan.version)
    try mission.removeTree(fresh)
    let source = try mission.making(fresh)
    try fill(source, with: plan)
    try replace(in: folder, by: source)
    try check(folder, against: plan)
    try syncTree(folder)
    try mission.removeTree(fresh)
  }

  private func replace(
    in folder: borrowing Directory, by source: borrowing Directory
  ) throws {
    let wanted = try source.names()
    let isWanted = Set(wanted)
    for name in try folder.names() where !isWanted.contains(name) { try folder.removeTree(name) }
    for name in wanted {
      guard let new = try source.entry(name) else { continue }
      let old = try folder.entry(name)
      if new.kind == .folder {
        if let old, old.kind != .folder { try folder.removeTree(name) }
        let child = try folder.making(name)
        if let origin = try source.folder(name) { try replace(in: child, by: origin) }
      } else if old != new {
        if old?.kind == .folder { try folder.removeTree(name) }
        try source.move(name, to: folder, as: name)
      }
    }
  }

  /// Links every item to the content; copies it if links are impossible.
  private func fill(_ folder: borrowing Directory, with plan: BundlePlan) throws {
    for file in plan.files {
      // The manifest was checked on arrival. Here it becomes names of files.
      if let fault = MissionPath.fault(in: file.path) {
        throw MissionError(.badManifest, item: file.path, fault)
      }
      let names = MissionPath.names(in: file.path).map(String.init)
      try place(file.content, names[...], in: folder)
    }
  }

  private func place(
    _ content: StoredContent, _ names: ArraySlice<String>, in folder: borrowing Directory
  ) throws {
    guard let name = names.first else { return }
    if names.count > 1 {
      let child = try folder.making(name)
      return try place(content, names.dropFirst(), in: child)
    }
    try folder.check(name)
    let object = content.hash.description
    guard let shelf = try shelf(of: content.hash) else {
      throw MissionError(.damaged, "\(root)/objects lacks content \(object)")
    }
    if system.linkat(shelf.descriptor, object, folder.descriptor, name) == 0 { return }
    guard [EXDEV, EPERM, EMLINK, ENOTSUP, EOPNOTSUPP].contains(errno) else {
      throw FileStoreError(errno: errno, "\(folder.path)/\(name) cannot be created")
    }
    let source = try shelf.openFile(object)
    let copy = try folder.makeFile(name)
    var offset: Int64 = 0
    while true {
      let block = try source.read(at: offset, count: RandomAccessFile.blockBytes)
      if block.isEmpty { break }
      try copy.write(block, at: offset)
      offset += Int64(block.count)
    }
    try copy.protect()
    try copy.sync()
  }

  // MARK: Checking

  /// Checks that the folder has exactly the plan's files with their sizes (SPEC.md §21).
  private func check(_ folder: borrowing Directory, against plan: BundlePlan) throws {
    var found: [String: Int64] = [:]
    try survey(folder, at: "", &found)
    for file in plan.files {
      guard let size = found.removeValue(forKey: file.path) else {
        throw MissionError(.damaged, item: file.path, "it is missing in the folder of its version")
      }
      guard size == file.content.size else {
        throw MissionError(
          .damaged, item: file.path,
          size < 0
            ? "it is not a regular file" : "it has \(size) bytes instead of \(file.content.size)")
      }
    }
    if let other = found.keys.min() {
      throw MissionError(.damaged, item: other, "it is in the folder, but not in the manifest")
    }
  }

  private func survey(
    _ folder: borrowing Directory, at path: String, _ found: inout [String: Int64]
  ) throws {
    for name in try folder.names() {
      guard let entry = try folder.entry(name) else { continue }
      if entry.kind == .folder {
        guard let child = try folder.folder(name) else { continue }
        try survey(child, at: path + name + "/", &found)
      } else {
        found[path + name] = entry.kind == .file ? entry.size : -1
      }
    }
  }

  /// Writes the names in a folder, and in all subfolders, to the disk.
  private func syncTree(_ folder: borrowing Directory) throws {
    for name in try folder.names() {
      guard try folder.entry(name)?.kind == .folder, let child = try folder.folder(name) else {
        continue
      }
      try syncTree(child)
    }
    try folder.sync()
  }

  /// Returns how a folder differs from the plan; `nil` if it does not. Does not read a file that is
  /// a hard link to the content.
  func fault(in plan: BundlePlan) throws -> MissionError? {
    guard seal == nil else { return nil }
    guard let mission = try folder("bundles").folder(plan.mission.value),
      let folder = try mission.folder(VersionName.folder(plan.version))
    else { return MissionError(.damaged, "the folder of its version is missing") }
    do {
      try check(folder, against: plan)
      for file in plan.files {
        let names = MissionPath.names(in: file.path).map(String.init)
        if try !holds(file.content, names[...], in: folder) {
          return MissionError(.damaged, item: file.path, "it differs from the downloaded file")
        }
      }
      return nil
    } catch let error as MissionError where error.kind == .damaged {
      return error
    }
  }

  /// Returns true if a file is a hard link to the content, or has the same bytes.
  private func holds(
    _ content: StoredContent, _ names: ArraySlice<String>, in folder: borrowing Directory
  ) throws -> Bool {
    guard let name = names.first else { return false }
    if names.count > 1 {
      guard let child = try folder.folder(name) else { return false }
      return try holds(content, names.dropFirst(), in: child)
    }
    let object = try shelf(of: content.hash)?.entry(content.hash.description)
    if let object, object == (try folder.entry(name)) { return true }
    return try folder.openFile(name).hash() == content.hash
  }

  func removeBundle(of mission: MissionID, version: Int64) throws {
    guard let folder = try folder("bundles").folder(mission.value) else { return }
    // Moved away first: a reader sees the whole folder or nothing.
    let name = VersionName.folder(version)
    guard try folder.entry(name) != nil else { return }
    let building = Self.buildingPrefix + name
    try folder.removeTree(building)
    try folder.move(name, to: folder, as: building)
    try folder.removeTree(building)
  }

  // MARK: Looking through

  /// Lists the content of the folders.
  func found() throws -> KeepingPlan.Found {
    var found = KeepingPlan.Found()
    let objects = try folder("objects")
    for name in try objects.names() where name.utf8.count == 2 {
      guard try objects.entry(name)?.kind == .folder, let shelf = try objects.folder(name) else {
        continue
      }
      found.objects += try shelf.names().compactMap { ContentHash($0) }
    }
    found.partials = try folder("partial").names().compactMap { ContentHash($0) }
    let bundles = try folder("bundles")
    for name in try bundles.names() {
      guard let id = MissionID(name), let mission = try bundles.folder(name) else { continue }
      for version in try mission.names() {
        if let number = VersionName.name(ofFolder: version) {
          found.bundles.append(MissionVersion(id, number))
        } else if version.begins(with: Self.buildingPrefix),
          let number = VersionName.name(
            ofFolder: version.dropFirst(Self.buildingPrefix.count))
        {
          found.building.append(MissionVersion(id, number))
        }
      }
    }
    return found
  }
}
