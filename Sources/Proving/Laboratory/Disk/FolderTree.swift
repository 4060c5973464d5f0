/// The target of a name: a file, or a folder with names.
final class FolderNode {
  /// Distinguishes it from all others of the tree, as an inode's number does.
  let number: UInt64
  /// The content; `nil` of a folder.
  let file: StoredFile?
  /// The targets of the names now, and after a loss of power.
  var names: [String: FolderNode] = [:]
  var durableNames: [String: FolderNode] = [:]
  /// The holder of the lock on the whole file, those with a shared lock, and holders of single
  /// bytes.
  weak var lock: FolderHandle?
  var sharers: [FolderHandle] = []
  var byteLocks: [Int64: FolderHandle] = [:]

  var isFolder: Bool { file == nil }

  init(number: UInt64, file: StoredFile?) {
    self.number = number
    self.file = file
  }
}

/// An open file or folder, by the process's number for it.
final class FolderHandle {
  let node: FolderNode
  /// For faults and messages.
  let path: String
  var isAlive = true

  init(_ node: FolderNode, path: String) {
    self.node = node
    self.path = path
  }
}

/// The folders of one machine, and the changes of names in them before they are durable.
struct FolderTree {
  /// An added or removed name.
  struct Effect {
    let folder: FolderNode
    let name: String
    /// `nil` if the name has no target any more.
    let node: FolderNode?
  }

  let root = FolderNode(number: 1, file: nil)
  private var last: UInt64 = 1
  /// Changes of names, oldest first. Of a move to another folder the new name comes first: it is
  /// never lost without the old one's coming back.
  private var journal: [[Effect]] = []

  // MARK: Changes

  mutating func makeNode(_ file: StoredFile?) -> FolderNode {
    last += 1
    return FolderNode(number: last, file: file)
  }

  mutating func change(_ effects: [Effect]) {
    for effect in effects { effect.folder.names[effect.name] = effect.node }
    journal.append(effects)
  }

  /// Makes the names of a folder durable, and the new names of files moved out of it.
  mutating func sync(_ folder: FolderNode) {
    for index in journal.indices.reversed() {
      guard journal[index].last?.folder === folder, let new = journal[index].first,
        new.folder !== folder
      else { continue }
      new.folder.durableNames[new.name] = new.node
      // No earlier change of this name may return.
      for earlier in 0...index {
        journal[earlier].removeAll { $0.folder === new.folder && $0.name == new.name }
      }
    }
    folder.durableNames = folder.names
    for index in journal.indices { journal[index].removeAll { $0.folder === folder } }
    journal.removeAll { $0.isEmpty }
  }

  /// Makes everything durable.
  mutating func syncAll() {
    visit { node, _ in
      node.durableNames = node.names
      node.file?.sync()
    }
    journal = []
  }

  // MARK: Power

  /// Removes part of the non-durable changes; the rest is durable then.
  mutating func losePower(random: () -> UInt64) {
    let kept = survivors(random)
    visit(durable: true) { node, _ in node.names = node.durableNames }
    // Also of folders without any name now: they may come back.
    for effect in journal.joined() {
      effect.folder.names = effect.folder.durableNames
      if let node = effect.node { node.names = node.durableNames }
    }
    for effect in kept { effect.folder.names[effect.name] = effect.node }
    journal = []
    visit { node, _ in
      node.durableNames = node.names
      node.file?.losePower(random: random)
      node.byteLocks = [:]
    }
  }

  /// Returns the changes of names left by a loss of power: none, all, the first ones, or of each
  /// folder the first ones.
  private func survivors(_ random: () -> UInt64) -> [Effect] {
    switch random() % 4 {
    case 0: return []
    case 1: return journal.flatMap { $0 }
    case 2: return journal.prefix(Int(random() % UInt64(journal.count + 1))).flatMap { $0 }
    default: break
    }
    var counts: [ObjectIdentifier: Int] = [:]
    var folders: [ObjectIdentifier] = []
    for effects in journal {
      for (index, effect) in effects.enumerated() where !Self.isRepeated(index, effects) {
        let folder = ObjectIdentifier(effect.folder)
        if counts[folder] == nil { folders.append(folder) }
        counts[folder, default: 0] += 1
      }
    }
    var left: [ObjectIdentifier: Int] = [:]
    for folder in folders { left[folder] = Int(random() % UInt64(counts[folder, default: 0] + 1)) }
    return firstOnes(&left)
  }

  /// Returns of each folder as many of the first changes as it has left.
  private func firstOnes(_ left: inout [ObjectIdentifier: Int]) -> [Effect] {
    var kept: [Effect] = []
    for effects in journal {
      var isCut = false
      for (index, effect) in effects.enumerated() {
        let folder = ObjectIdentifier(effect.folder)
        let isRepeated = Self.isRepeated(index, effects)
        if isCut || !isRepeated && left[folder, default: 0] == 0 {
          // A file without the new name keeps the old one.
          isCut = true
          left[folder] = 0
          continue
        }
        if !isRepeated { left[folder, default: 0] -= 1 }
        kept.append(effect)
      }
    }
    return kept
  }

  /// Returns whether a change is the second one of a move within one folder.
  private static func isRepeated(_ index: Int, _ effects: [Effect]) -> Bool {
    index > 0 && effects[index - 1].folder === effects[index].folder
  }

  // MARK: Looking

  /// Calls `body` with each node and the path below the root, in the order of the paths; a file
  /// with several names once.
  func visit(durable: Bool = false, _ body: (FolderNode, String) -> Void) {
    var seen: Set<ObjectIdentifier> = []
    func walk(_ node: FolderNode, _ path: String) {
      guard seen.insert(ObjectIdentifier(node)).inserted else { return }
      let names = Set(node.names.keys).union(durable ? Set(node.durableNames.keys) : []).sorted()
      let children = names.flatMap { name in
        [node.names[name], durable ? node.durableNames[name] : nil].compactMap { $0 }
          .map { (name, $0) }
      }
      body(node, path)
      for (name, child) in children { walk(child, path.isEmpty ? name : path + "/" + name) }
    }
    walk(root, "")
  }

  /// Returns a durable copy, in which several names of one file still lead to one file.
  func copied() -> FolderTree {
    var copy = FolderTree()
    var copies: [ObjectIdentifier: FolderNode] = [ObjectIdentifier(root): copy.root]
    visit { node, _ in
      let target = copies[ObjectIdentifier(node)] ?? copy.root
      for name in node.names.keys.sorted() {
        guard let child = node.names[name] else { continue }
        let known = copies[ObjectIdentifier(child)]
        let made =
          known ?? copy.makeNode(child.file.map { StoredFile(path: $0.path, copyOf: $0) })
        copies[ObjectIdentifier(child)] = made
        target.names[name] = made
        target.durableNames[name] = made
      }
    }
    return copy
  }
}
