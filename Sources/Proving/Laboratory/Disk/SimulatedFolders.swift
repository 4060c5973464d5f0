import Foundation

/// The folders of one machine on a simulated disk, beside its databases.
///
/// They have POSIX's calls on files, in memory, with the disk's faults and losses of power.
///
/// **Loss of power.** A file's content follows the rules of ``SimulatedDisk`` for databases. Names
/// are durable when their folder was synced. Of the others a loss of power keeps none, all, the
/// first ones, or of each folder the first ones. A move within a folder happens or does not; a move
/// to another folder may leave both names, and never none.
///
/// **Not modelled.** Permissions, times, symbolic links, and room: a disk is full if the fault
/// makes it so.
package final class SimulatedFolders {
  /// The reason for a failed call: POSIX's number.
  package struct Failure: Error, Equatable {
    package let code: Int32
  }

  /// The facts about an entry.
  package struct Facts: Sendable {
    package let isFolder: Bool
    /// Bytes.
    package let size: Int
    package let number: UInt64
  }

  /// The folder around everything, such as `/device-00`.
  package let place: String
  /// Requested paths outside of the machine's folder.
  package private(set) var strays: [String] = []
  private unowned let disk: SimulatedDisk
  private var tree = FolderTree()
  private var handles: [Int32: FolderHandle] = [:]
  private var lastDescriptor: Int32 = 1_000

  init(place: String, on disk: SimulatedDisk, copyOf other: SimulatedFolders? = nil) {
    self.place = place
    self.disk = disk
    if let other { tree = other.tree.copied() }
  }

  // MARK: Opening

  /// Opens the entry at a path, by the flags of open(2).
  package func open(_ path: String, _ flags: Int32) throws(Failure) -> Int32 {
    if path == place { return add(tree.root, path) }
    let (folder, name) = try find(path)
    return try open(folder, name, flags, path)
  }

  /// Opens the entry of a folder by this name.
  package func open(
    in descriptor: Int32, _ name: String, _ flags: Int32
  ) throws(Failure) -> Int32 {
    let handle = try self.handle(descriptor)
    return try open(handle.node, name, flags, handle.path + "/" + name)
  }

  private func open(
    _ folder: FolderNode, _ name: String, _ flags: Int32, _ path: String
  ) throws(Failure) -> Int32 {
    guard folder.isFolder else { throw Failure(code: ENOTDIR) }
    if let node = folder.names[name] {
      if flags & O_CREAT != 0, flags & O_EXCL != 0 { throw Failure(code: EEXIST) }
      if flags & O_DIRECTORY != 0, !node.isFolder { throw Failure(code: ENOTDIR) }
      return add(node, path)
    }
    guard flags & O_CREAT != 0 else { throw Failure(code: ENOENT) }
    let node = tree.makeNode(StoredFile(path: path))
    try step(.open, path) { tree.change([.init(folder: folder, name: name, node: node)]) }
    return add(node, path)
  }

  private func add(_ node: FolderNode, _ path: String) -> Int32 {
    lastDescriptor += 1
    handles[lastDescriptor] = FolderHandle(node, path: path)
    return lastDescriptor
  }

  package func close(_ descriptor: Int32) {
    guard let handle = handles.removeValue(forKey: descriptor) else { return }
    free(handle)
  }

  // MARK: Names

  package func makeFolder(_ path: String) throws(Failure) {
    if path == place { throw Failure(code: EEXIST) }
    let (folder, name) = try find(path)
    try makeFolder(folder, name, path)
  }

  package func makeFolder(in descriptor: Int32, _ name: String) throws(Failure) {
    let handle = try self.handle(descriptor)
    try makeFolder(handle.node, name, handle.path + "/" + name)
  }

  private func makeFolder(
    _ folder: FolderNode, _ name: String, _ path: String
  ) throws(Failure) {
    guard folder.names[name] == nil else { throw Failure(code: EEXIST) }
    let node = tree.makeNode(nil)
    try step(.open, path) { tree.change([.init(folder: folder, name: name, node: node)]) }
  }

  package func remove(_ path: String) throws(Failure) {
    let (folder, name) = try find(path)
    try remove(folder, name, isFolder: false, path)
  }

  package func remove(
    in descriptor: Int32, _ name: String, isFolder: Bool
  ) throws(Failure) {
    let handle = try self.handle(descriptor)
    try remove(handle.node, name, isFolder: isFolder, handle.path + "/" + name)
  }

  private func remove(
    _ folder: FolderNode, _ name: String, isFolder: Bool, _ path: String
  ) throws(Failure) {
    guard let node = folder.names[name] else { throw Failure(code: ENOENT) }
    guard node.isFolder == isFolder else { throw Failure(code: isFolder ? ENOTDIR : EISDIR) }
    guard node.names.isEmpty else { throw Failure(code: ENOTEMPTY) }
    try step(.delete, path) { tree.change([.init(folder: folder, name: name, node: nil)]) }
  }

  package func move(
    in descriptor: Int32, _ name: String, to other: Int32, _ new: String
  ) throws(Failure) {
    let (source, target) = (try handle(descriptor), try handle(other))
    guard let node = source.node.names[name] else { throw Failure(code: ENOENT) }
    if let old = target.node.names[new] {
      guard old.isFolder == node.isFolder else { throw Failure(code: EISDIR) }
      guard old.names.isEmpty else { throw Failure(code: ENOTEMPTY) }
    }
    try step(.delete, target.path + "/" + new) {
      tree.change([
        .init(folder: target.node, name: new, node: node),
        .init(folder: source.node, name: name, node: nil),
      ])
    }
  }

  package func link(
    in descriptor: Int32, _ name: String, to other: Int32, _ new: String
  ) throws(Failure) {
    let (source, target) = (try handle(descriptor), try handle(other))
    guard let node = source.node.names[name] else { throw Failure(code: ENOENT) }
    guard !node.isFolder else { throw Failure(code: EPERM) }
    guard target.node.names[new] == nil else { throw Failure(code: EEXIST) }
    try step(.open, target.path + "/" + new) {
      tree.change([.init(folder: target.node, name: new, node: node)])
    }
  }

  // MARK: Looking

  package func facts(_ path: String) throws(Failure) -> Facts {
    let (folder, name) = try find(path)
    guard let node = folder.names[name] else { throw Failure(code: ENOENT) }
    return facts(of: node)
  }

  package func facts(of descriptor: Int32) throws(Failure) -> Facts {
    facts(of: try handle(descriptor).node)
  }

  package func facts(in descriptor: Int32, _ name: String) throws(Failure) -> Facts {
    guard let node = try handle(descriptor).node.names[name] else { throw Failure(code: ENOENT) }
    return facts(of: node)
  }

  private func facts(of node: FolderNode) -> Facts {
    Facts(isFolder: node.isFolder, size: node.file?.bytes.count ?? 0, number: node.number)
  }

  package func names(in descriptor: Int32) throws(Failure) -> [String] {
    let node = try handle(descriptor).node
    guard node.isFolder else { throw Failure(code: ENOTDIR) }
    return node.names.keys.sorted()
  }

  /// Returns every file's path below ``place``, in order. For observers.
  package func paths() -> [String] {
    var found: [String] = []
    func walk(_ node: FolderNode, _ path: String) {
      if !node.isFolder { return found.append(path) }
      for name in node.names.keys.sorted() {
        if let child = node.names[name] { walk(child, path.isEmpty ? name : path + "/" + name) }
      }
    }
    walk(tree.root, "")
    return found
  }

  /// Returns the content of the file at a path below ``place``; `nil` if there is none. For
  /// observers.
  package func bytes(of path: String) -> [UInt8]? {
    var node: FolderNode? = tree.root
    for name in path.split(separator: "/") { node = node?.names[String(name)] }
    return node?.file?.bytes.copied()
  }

  // MARK: Content

  package func read(
    _ descriptor: Int32, _ target: UnsafeMutableRawPointer, _ count: Int, at offset: Int
  ) throws(Failure) -> Int {
    let file = try file(descriptor)
    return file.read(target, count: count, at: offset)
  }

  package func write(
    _ descriptor: Int32, _ source: UnsafeRawPointer, _ count: Int, at offset: Int
  ) throws(Failure) -> Int {
    let (file, path) = (try file(descriptor), try handle(descriptor).path)
    switch disk.verdict(.write, path, count) {
    case .well: break
    case .full: throw Failure(code: ENOSPC)
    case .fails:
      if handles[descriptor]?.isAlive == true {
        file.write(source, count: disk.draw(upTo: count), at: offset)
      }
      throw Failure(code: EIO)
    case .crashes:
      // A first part of it, perhaps none, is there.
      file.write(source, count: disk.draw(upTo: count), at: offset)
      disk.crash(at: path)
      throw Failure(code: EIO)
    }
    file.write(source, count: count, at: offset)
    return count
  }

  package func truncate(_ descriptor: Int32, to size: Int) throws(Failure) {
    let (file, path) = (try file(descriptor), try handle(descriptor).path)
    try step(.truncate, path, size) { file.resize(to: size) }
  }

  /// Makes a file's content durable, or a folder's names.
  package func sync(_ descriptor: Int32) throws(Failure) {
    let handle = try handle(descriptor)
    try step(.sync, handle.path) {
      if let file = handle.node.file { file.sync() } else { tree.sync(handle.node) }
    }
  }

  /// Makes everything durable.
  package func syncAll() { tree.syncAll() }

  // MARK: Locks

  /// Locks a file; throws `EWOULDBLOCK` if another process has locked it.
  package func lock(_ descriptor: Int32) throws(Failure) {
    let handle = try handle(descriptor)
    guard handle.node.lock == nil || handle.node.lock === handle,
      handle.node.sharers.allSatisfy({ $0 === handle })
    else { throw Failure(code: EWOULDBLOCK) }
    handle.node.lock = handle
    handle.node.sharers = []
  }

  /// Locks a file together with others; throws `EWOULDBLOCK` if another process has it alone.
  package func share(_ descriptor: Int32) throws(Failure) {
    let handle = try handle(descriptor)
    guard handle.node.lock == nil || handle.node.lock === handle else {
      throw Failure(code: EWOULDBLOCK)
    }
    handle.node.lock = nil
    if !handle.node.sharers.contains(where: { $0 === handle }) {
      handle.node.sharers.append(handle)
    }
  }

  /// Locks one byte of a file; throws `EAGAIN` if another process has locked it.
  package func lock(_ descriptor: Int32, byte: Int64) throws(Failure) {
    let handle = try handle(descriptor)
    let owner = handle.node.byteLocks[byte]
    guard owner == nil || owner === handle else { throw Failure(code: EAGAIN) }
    handle.node.byteLocks[byte] = handle
  }

  private func free(_ handle: FolderHandle) {
    handle.isAlive = false
    if handle.node.lock === handle { handle.node.lock = nil }
    handle.node.sharers.removeAll { $0 === handle }
    for (byte, owner) in handle.node.byteLocks where owner === handle {
      handle.node.byteLocks[byte] = nil
    }
  }

  // MARK: Processes and power

  /// Makes every open handle fail from now on, and releases all locks.
  func kill() {
    for descriptor in handles.keys.sorted() {
      if let handle = handles[descriptor] { free(handle) }
    }
  }

  func losePower(random: () -> UInt64) { tree.losePower(random: random) }

  // MARK: Paths

  private func handle(_ descriptor: Int32) throws(Failure) -> FolderHandle {
    guard let handle = handles[descriptor] else { throw Failure(code: EBADF) }
    guard handle.isAlive else { throw Failure(code: EIO) }
    return handle
  }

  private func file(_ descriptor: Int32) throws(Failure) -> StoredFile {
    guard let file = try handle(descriptor).node.file else { throw Failure(code: EISDIR) }
    return file
  }

  /// Returns the folder of a path's last name, and this name.
  private func find(_ path: String) throws(Failure) -> (FolderNode, String) {
    let names = path.split(separator: "/").map(String.init)
    let roots = place.split(separator: "/").map(String.init)
    guard names.starts(with: roots), names.count > roots.count, !names.contains(".."),
      let last = names.last
    else {
      strays.append(path)
      throw Failure(code: ENOENT)
    }
    var node = tree.root
    for name in names[roots.count...].dropLast() {
      guard let next = node.names[name] else { throw Failure(code: ENOENT) }
      guard next.isFolder else { throw Failure(code: ENOTDIR) }
      node = next
    }
    return (node, last)
  }

  /// Performs a step, which is done or not done.
  private func step(
    _ operation: SimulatedDisk.SyncOperation, _ path: String, _ count: Int = 0, _ body: () -> Void
  ) throws(Failure) {
    switch disk.verdict(operation, path, count) {
    case .well: body()
    case .full where operation == .open: throw Failure(code: ENOSPC)
    case .full: body()
    case .fails: throw Failure(code: EIO)
    case .crashes:
      if disk.flip() { body() }
      disk.crash(at: path)
      throw Failure(code: EIO)
    }
  }
}

extension SimulatedDisk {
  /// Returns the folders of the machine at `place`, such as `/device-00`, created at the first
  /// request. They are killed, copied and removed with the machine's databases.
  package func folders(of place: String) -> SimulatedFolders {
    if let folders = folders[place] { return folders }
    let made = SimulatedFolders(place: place, on: self)
    folders[place] = made
    return made
  }

  /// Returns the folders of the machine at `place`, if there are any.
  package func existingFolders(of place: String) -> SimulatedFolders? { folders[place] }

  func folders(in place: Place) -> [SimulatedFolders] {
    folders.keys.filter { place.contains($0) }.sorted().compactMap { folders[$0] }
  }
}
