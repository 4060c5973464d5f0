import FerryPlatform

extension MissionManifest {
  /// Returns the reason why this cannot be published or downloaded, or `nil` if it can.
  ///
  /// Every file system takes all paths, and no two of them are the same. Sizes and chunks fit each
  /// other, and items depend on items of the same mission and never in a circle.
  public func fault(limits: MissionLimits = .standard) -> String? {
    // A mission's name is the name of the folder, too.
    if let fault = MissionPath.fault(in: id.value) { return "the mission's name: \(fault)" }
    if !(1...Limits.sequenceMax ~= version) { return "a version is a number from 1 to 2^62" }
    if !limits.priority.contains(priority) {
      return "priority \(priority) is not from \(limits.priority.lowerBound) to "
        + "\(limits.priority.upperBound)"
    }
    if title.utf8.count > limits.titleBytes {
      return "the title has \(title.utf8.count) bytes; \(limits.titleBytes) are allowed"
    }
    if let hidden = ReadableName.hiddenScalar(in: title) {
      return "the title contains \(hidden), which is not a visible character"
    }
    if summary.utf8.count > limits.summaryBytes {
      return "the summary has \(summary.utf8.count) bytes; \(limits.summaryBytes) are allowed"
    }
    if !limits.chunkBytes.contains(chunkSize) || chunkSize & (chunkSize - 1) != 0 {
      return "chunkSize \(chunkSize) is no power of two from \(limits.chunkBytes.lowerBound) to "
        + "\(limits.chunkBytes.upperBound)"
    }
    if after.contains(id) { return "mission \(id) waits for itself" }
    if after.count > limits.after { return "it waits for more than \(limits.after) missions" }
    if items.isEmpty { return "a mission has at least one item" }
    if items.count > limits.items {
      return "it has \(items.count) items; \(limits.items) are allowed"
    }
    if items.reduce(0, { $0 + $1.chunks.count }) > limits.chunks {
      return "it has more than \(limits.chunks) chunks; take a larger chunkSize"
    }
    return faultInItems(limits) ?? faultInPaths() ?? faultInSizes() ?? faultInOrder()
      ?? bundle?.fault(in: self)
  }

  /// Returns the fault of one content with two sizes: one of them is wrong.
  private func faultInSizes() -> String? {
    var found: [ContentHash: MissionItem] = [:]
    for item in items {
      guard let other = found.updateValue(item, forKey: item.hash), other.size != item.size else {
        continue
      }
      return
        "items \(other.path) and \(item.path) have one sha256 and two sizes, \(other.size) and "
        + "\(item.size)"
    }
    return nil
  }

  private func faultInItems(_ limits: MissionLimits) -> String? {
    for item in items {
      if let fault = MissionPath.fault(in: item.path) { return fault }
      if let fault = fault(in: item, limits) { return "item \(item.path): \(fault)" }
    }
    return nil
  }

  private func fault(in item: MissionItem, _ limits: MissionLimits) -> String? {
    guard (0...limits.itemBytes).contains(item.size) else {
      return "\(item.size) is no size from 0 to \(limits.itemBytes)"
    }
    let parts = item.size / chunkSize + (item.size % chunkSize > 0 ? 1 : 0)
    if !item.chunks.isEmpty, parts <= 1 || item.chunks.count != parts {
      return "\(item.chunks.count) chunks do not fit \(item.size) bytes"
    }
    if item.isHosted, item.chunks.isEmpty, parts > 1 {
      return "the hashes of its chunks are missing"
    }
    if item.mediaType.utf8.isEmpty || item.mediaType.utf8.count > 255
      || !item.mediaType.utf8.allSatisfy({ 0x21...0x7E ~= $0 || $0 == 0x20 })
    {
      return "it has no media type"
    }
    if item.after.count > limits.after { return "it waits for more than \(limits.after) items" }
    guard let url = item.url else { return item.isHosted ? nil : "it has neither content nor url" }
    if url.utf8.count > limits.urlBytes { return "its url has more than \(limits.urlBytes) bytes" }
    let isWeb =
      url.lowercasedASCII.begins(with: "http://") || url.lowercasedASCII.begins(with: "https://")
    guard isWeb, url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      return "“\(url)” is no http or https address"
    }
    return Self.hasHost(url) ? nil : "“\(url)” names no host"
  }

  /// Returns whether a host is between `//`, or the name of a user, and the port or path.
  private static func hasHost(_ url: String) -> Bool {
    guard let colon = url.utf8.firstIndex(of: 0x3A) else { return false }
    let rest = url.utf8[colon...].dropFirst(3)
    let authority = rest.prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 && $0 != 0x5C }
    let place = authority.split(separator: 0x40, omittingEmptySubsequences: false).last ?? authority
    return place.first.map { $0 != 0x3A } ?? false
  }

  /// Returns the fault of two files at one place, or of a file at the place of another's folder.
  private func faultInPaths() -> String? {
    var files: [String: String] = [:]
    for item in items {
      if let other = files.updateValue(item.path, forKey: MissionPath.folded(item.path)) {
        return other == item.path
          ? "path “\(item.path)” is a duplicate"
          : "paths “\(other)” and “\(item.path)” differ in case only"
      }
    }
    // Two folders with names different in case only are two folders here and one there.
    var folders: [String: Substring] = [:]
    for item in items {
      var rest = item.path[...]
      while let slash = rest.utf8.lastIndex(of: 0x2F) {
        rest = rest[..<slash]
        let folded = MissionPath.folded(String(rest))
        if let file = files[folded] { return "“\(file)” is both a file and a folder" }
        if let other = folders.updateValue(rest, forKey: folded), other != rest {
          return "folders “\(other)” and “\(rest)” differ in case only"
        }
      }
    }
    return nil
  }

  /// Returns the fault of an item with a dependency on a missing item, or through others on itself.
  private func faultInOrder() -> String? {
    guard items.contains(where: { !$0.after.isEmpty }) else { return nil }
    var places: [String: Int] = [:]
    for (place, item) in items.enumerated() { places[item.path] = place }
    var waiting = [Int](repeating: 0, count: items.count)
    var followers = [[Int]](repeating: [], count: items.count)
    for (place, item) in items.enumerated() {
      for path in item.after {
        guard let first = places[path] else {
          return "item \(item.path) waits for “\(path)”, which is not in the mission"
        }
        followers[first].append(place)
        waiting[place] += 1
      }
    }
    var ready = waiting.indices.filter { waiting[$0] == 0 }
    var done = 0
    while let place = ready.popLast() {
      done += 1
      for follower in followers[place] {
        waiting[follower] -= 1
        if waiting[follower] == 0 { ready.append(follower) }
      }
    }
    guard done < items.count, let stuck = waiting.firstIndex(where: { $0 > 0 }) else { return nil }
    return "item \(items[stuck].path) waits for itself in a circle"
  }
}
