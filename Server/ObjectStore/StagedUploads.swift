import FerryMissionServer
import FerryProtocol
import Foundation

/// Uploads whose parts are objects of the bucket until the whole is there. Each node may take each part.
///
/// The part that ends at byte 8,388,608 is `incoming/OWNER-HASH-TOTAL/0000000000008388608`. A part is
/// kept only after the part before it, so the parts before an end are always complete.
struct StagedUploads: Sendable {
  private static let folder = "incoming/"
  private static let removalsAtOnce = 16
  /// The quota is checked with the first part, and with each part that passes a multiple of this.
  private static let quotaStep: Int64 = 1 << 30

  let files: ObjectFiles

  // MARK: Names

  private func name(_ upload: BlobDirectory.Upload) -> String {
    "\(Self.folder)\(upload.owner)-\(upload.hash)-\(upload.total)/"
  }

  private func name(_ upload: BlobDirectory.Upload, endingAt end: Int64) -> String {
    let digits = String(end)
    return name(upload) + String(repeating: "0", count: max(0, 19 - digits.count)) + digits
  }

  // MARK: Taking parts

  /// Keeps the next part, and returns the bytes that are here.
  ///
  /// All of them may be here already, because a node was killed before it had put them together.
  ///
  /// - Throws: ``BlobError/wrongOffset(_:)``, ``BlobError/overQuota(used:total:quota:)``.
  func append(
    _ bytes: [UInt8], at offset: Int64, to upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Int64 {
    let (end, isOver) = offset.addingReportingOverflow(Int64(bytes.count))
    var isNext = !isOver && end <= upload.total && !bytes.isEmpty
    if isNext { isNext = try await follows(offset, in: upload) }
    if !isNext {
      let reached = try await parts(of: upload).reached
      if reached == upload.total || bytes.isEmpty && offset == reached { return reached }
      guard offset == reached, !isOver, end <= upload.total else { throw .wrongOffset(reached) }
    }
    if offset == 0 || offset / Self.quotaStep != end / Self.quotaStep {
      try await checkQuota(of: upload)
    }
    try await files.put(bytes, as: name(upload, endingAt: end))
    return end
  }

  /// Whether a part ends where the next one begins. Of the first part a list shows that.
  private func follows(
    _ offset: Int64, in upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Bool {
    if offset <= 0 { return false }
    return try await files.size(of: name(upload, endingAt: offset)) != nil
  }

  private func checkQuota(of upload: BlobDirectory.Upload) async throws(BlobError) {
    if upload.quota == .max { return }
    let own = name(upload)
    var used: Int64 = 0
    try await files.forEach(below: "\(Self.folder)\(upload.owner)-") { part in
      if !part.name.hasPrefix(own) { used &+= part.size }
    }
    let (sum, isHuge) = used.addingReportingOverflow(upload.total)
    guard isHuge || sum > upload.quota else { return }
    throw .overQuota(used: used, total: upload.total, quota: upload.quota)
  }

  // MARK: Reading parts

  /// Returns the bytes that are here of an owner's upload; 0 if none was begun.
  func offset(owner: String, _ hash: ContentHash) async throws(BlobError) -> Int64 {
    // The caller does not know how many bytes the whole has.
    var uploads: [Substring: StagedParts] = [:]
    try await files.forEach(below: "\(Self.folder)\(owner)-\(hash)-") { part in
      guard let place = Place(part.name) else { return }
      uploads[place.upload, default: StagedParts()].add(place.end, size: part.size)
    }
    return uploads.values.map(\.reached).max() ?? 0
  }

  private func parts(of upload: BlobDirectory.Upload) async throws(BlobError) -> StagedParts {
    var parts = StagedParts()
    try await files.forEach(below: name(upload)) { part in
      if let place = Place(part.name) { parts.add(place.end, size: part.size) }
    }
    return parts
  }

  /// Copies the whole into a directory of this machine; `nil` if parts are missing, because another
  /// node has just put them together.
  func collect(
    _ upload: BlobDirectory.Upload, into local: BlobThreads
  ) async throws(BlobError) -> SpooledUpload? {
    guard let chain = try await parts(of: upload).chain(to: upload.total) else { return nil }
    let copy = BlobDirectory.Upload(
      owner: "join" + UUID().uuidString.filter(\.isHexDigit), hash: upload.hash, total: upload.total
    )
    do {
      var start: Int64 = 0
      for end in chain {
        let count = Int(end - start)
        guard let bytes = try await files.content(of: name(upload, endingAt: end), limit: count),
          bytes.count == count
        else { break }
        let spooling = try await local.run { [start] (directory, _) throws(BlobError) in
          try directory.spool(bytes, at: start, to: copy)
        }
        if case .whole(let spooled) = spooling { return spooled }
        start = end
      }
    } catch {
      try? await abandon(copy, in: local)
      throw error
    }
    try await abandon(copy, in: local)
    return nil
  }

  private func abandon(
    _ copy: BlobDirectory.Upload, in local: BlobThreads
  ) async throws(BlobError) {
    try await local.run { (directory, _) throws(BlobError) in directory.abandon(copy) }
  }

  // MARK: Removing parts

  /// Removes the parts of an upload.
  func remove(_ upload: BlobDirectory.Upload) async throws(BlobError) {
    var names: [String] = []
    try await files.forEach(below: name(upload)) { names.append($0.name) }
    try await remove(names)
  }

  private func remove(_ names: [String]) async throws(BlobError) {
    _ = try await concurrently(names, Self.removalsAtOnce) { (name) async throws(BlobError) in
      try await files.remove(name)
    }
  }

  /// Removes uploads whose last part came at `moment` or before (seconds since 1970).
  func removeUnfinished(before moment: Int64) async throws(BlobError) -> UnfinishedRemoval {
    var removal = UnfinishedRemoval()
    var upload = StagedNames()
    func end() async throws(BlobError) {
      guard !upload.names.isEmpty, upload.newest <= moment else { return }
      do {
        try await remove(upload.names)
        removal.count += 1
      } catch .cancelled {
        throw .cancelled
      } catch {
        removal.failures.append(error)
      }
    }
    try await files.forEach(below: Self.folder) { (part) async throws(BlobError) in
      guard let folder = Place(part.name)?.upload else { return }
      if folder != upload.folder {
        try await end()
        upload = StagedNames(folder: String(folder))
      }
      upload.names.append(part.name)
      upload.newest = max(upload.newest, part.modifiedAt)
    }
    try await end()
    return removal
  }

  /// The parts of an upload in a list.
  private struct StagedNames {
    var folder = ""
    var names: [String] = []
    /// Seconds since 1970.
    var newest: Int64 = .min
  }

  /// The place of a part, from its name.
  private struct Place {
    let upload: Substring
    let end: Int64

    /// Fails for names that are no part's.
    init?(_ name: String) {
      let folders = name.split(separator: "/", omittingEmptySubsequences: false)
      guard folders.count == 3, let end = Int64(folders[2]), end > 0 else { return nil }
      (upload, self.end) = (folders[1], end)
    }
  }
}

/// The parts of an upload by their ends; pure.
struct StagedParts: Sendable, Equatable {
  /// Bytes of the part that ends at each place.
  private var sizes: [Int64: Int64] = [:]

  mutating func add(_ end: Int64, size: Int64) {
    if size > 0 && size <= end { sizes[end] = size }
  }

  /// The greatest end that parts without a gap reach from the begin.
  var reached: Int64 {
    var ends: Set<Int64> = [0]
    for (end, size) in sizes.sorted(by: { $0.key < $1.key }) where ends.contains(end - size) {
      ends.insert(end)
    }
    return ends.max() ?? 0
  }

  /// Returns the ends of parts that make up the bytes up to `end`, in order; `nil` if one is missing.
  func chain(to end: Int64) -> [Int64]? {
    var (ends, place) = ([Int64](), end)
    while place > 0 {
      guard let size = sizes[place] else { return nil }
      ends.append(place)
      place -= size
    }
    return ends.reversed()
  }
}
