import FerryPlatform
import FerryProtocol
import Synchronization

/// Uploads in the form of bucket objects, one for each part until the whole is there. Each node may
/// take each part.
///
/// The part up to byte 8,388,608 is `incoming/OWNER-HASH-TOTAL/0000000000008388608`. A part is
/// stored if it begins at the end of the present parts, or if it repeats a present part. A
/// concurrent removal may leave a gap, which the last part detects.
final class StagedUploads: Sendable {
  private static let folder = "incoming/"
  private static let removalsAtOnce = 16

  private let files: ObjectFiles
  /// Bytes that an owner may send between two checks of the quota.
  private let uncheckedMax: Int64
  /// The bytes sent to this node by each owner since the last check of the quota.
  private let unchecked = Mutex<[String: Int64]>([:])

  init(files: ObjectFiles, uncheckedMax: Int64) {
    (self.files, self.uncheckedMax) = (files, uncheckedMax)
  }

  // MARK: Names

  private func name(_ upload: BlobDirectory.Upload) -> String {
    "\(Self.folder)\(upload.owner)-\(upload.hash)-\(upload.total)/"
  }

  private func name(_ upload: BlobDirectory.Upload, endingAt end: Int64) -> String {
    let digits = String(end)
    return name(upload) + String(repeating: "0", count: max(0, 19 - digits.count)) + digits
  }

  // MARK: Taking parts

  /// Stores the next part, and returns the present bytes.
  ///
  /// All of them may be here already, because a node was killed before it had put them together.
  ///
  /// - Throws: ``BlobError/wrongOffset(_:)``, ``BlobError/overQuota(used:total:quota:)``.
  func append(
    _ bytes: [UInt8], at offset: Int64, to upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Int64 {
    let (end, isOver) = offset.addingReportingOverflow(Int64(bytes.count))
    var isInPlace = offset >= 0 && !isOver && end <= upload.total && !bytes.isEmpty
    if isInPlace { isInPlace = try await takes(offset..<end, of: upload) }
    if !isInPlace {
      let parts = try await parts(of: upload)
      let reached = parts.reached
      if reached == upload.total || bytes.isEmpty && offset == reached { return reached }
      guard offset == reached, !isOver, end <= upload.total else { throw .wrongOffset(reached) }
      // Parts behind a gap are the rest of an ended upload.
      await remove(parts.ends(after: reached).map { name(upload, endingAt: $0) })
    }
    try await checkQuota(of: upload, at: offset, adding: Int64(bytes.count))
    try await files.put(bytes, as: name(upload, endingAt: end))
    return end
  }

  /// Returns `true` if a part begins where the present parts end, or is one of them.
  private func takes(
    _ part: Range<Int64>, of upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Bool {
    // The part right before this one, and the next part in the list.
    let place = part.lowerBound == 0 ? nil : name(upload, endingAt: part.lowerBound - 1)
    var near = try await files.first(2, below: name(upload), after: place).compactMap { listed in
      Place(listed.name).map { (end: $0.end, size: listed.size) }
    }
    if part.lowerBound > 0 {
      guard near.first?.end == part.lowerBound else { return false }
      near.removeFirst()
    }
    guard let next = near.first else { return true }
    return next.end == part.upperBound && next.size == part.upperBound - part.lowerBound
  }

  /// Checks the quota with the first part of an upload, and after every ``uncheckedMax`` bytes of
  /// the owner.
  private func checkQuota(
    of upload: BlobDirectory.Upload, at offset: Int64, adding count: Int64
  ) async throws(BlobError) {
    if upload.quota == .max { return }
    let sum = unchecked.withLock { [uncheckedMax] unchecked in
      let sum = min(unchecked[upload.owner] ?? 0, uncheckedMax) + count
      unchecked[upload.owner] = sum
      return sum
    }
    // After a refusal, each part is checked until there is room again.
    guard offset == 0 || sum >= uncheckedMax else { return }
    let own = name(upload)
    var use = StagedUse()
    try await files.forEach(below: "\(Self.folder)\(upload.owner)-") {
      use.add($0.size, isOwn: $0.name.begins(with: own))
    }
    guard !use.exceeds(upload.quota, total: upload.total) else {
      throw .overQuota(used: use.others, total: upload.total, quota: upload.quota)
    }
    unchecked.withLock { unchecked in
      let rest = (unchecked[upload.owner] ?? 0) - sum
      unchecked[upload.owner] = rest > 0 ? rest : nil
    }
  }

  // MARK: Reading parts

  /// Returns the present bytes of an owner's upload; 0 if none was begun.
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

  /// Copies the whole into a file of this machine.
  ///
  /// - Throws: ``BlobError/busy`` if this node already copies the upload, or if parts are missing
  ///   because another node has completed or dropped it.
  func collect(
    _ upload: BlobDirectory.Upload, into local: BlobThreads
  ) async throws(BlobError) -> SpooledUpload {
    guard let chain = try await parts(of: upload).chain(to: upload.total) else { throw .busy }
    let copy = try await local.run { (directory, _) throws(BlobError) in
      try directory.copy(of: upload)
    }
    do throws(BlobError) {
      var start: Int64 = 0
      for end in chain {
        let count = Int(end - start)
        guard let bytes = try await files.content(of: name(upload, endingAt: end), limit: count),
          bytes.count == count
        else { throw BlobError.busy }
        try await local.run { [start] (_, _) throws(BlobError) in try copy.write(bytes, at: start) }
        start = end
      }
      return copy
    } catch {
      copy.remove()
      throw error
    }
  }

  // MARK: Removing parts

  /// Removes the parts of an upload.
  func remove(_ upload: BlobDirectory.Upload) async {
    var names: [String] = []
    // Parts that stay after a failure of the store expire.
    try? await files.forEach(below: name(upload)) { names.append($0.name) }
    await remove(names)
  }

  /// Removes parts. Returns the failures.
  @discardableResult
  private func remove(_ names: [String]) async -> [BlobError] {
    let failures = try? await concurrently(names, Self.removalsAtOnce) {
      (name) async throws(BlobError) -> BlobError? in
      do throws(BlobError) {
        try await self.files.remove(name)
        return nil
      } catch {
        return error
      }
    }
    return (failures ?? []).compactMap(\.self)
  }

  /// Removes uploads whose last part came at `moment` or before (seconds since 1970).
  func removeUnfinished(before moment: Int64) async throws(BlobError) -> UnfinishedRemoval {
    var removal = UnfinishedRemoval()
    var upload = StagedNames()
    func end() async {
      guard !upload.names.isEmpty, upload.newest <= moment else { return }
      let failures = await remove(upload.names)
      if failures.isEmpty { removal.count += 1 }
      removal.failures += failures.prefix(1)
    }
    try await files.forEach(below: Self.folder) { (part) async throws(BlobError) in
      guard let folder = Place(part.name)?.upload else { return }
      if folder != upload.folder {
        await end()
        upload = StagedNames(folder: String(folder))
      }
      upload.names.append(part.name)
      upload.newest = max(upload.newest, part.modifiedAt)
    }
    await end()
    return removal
  }

  /// The parts of an upload in a list.
  private struct StagedNames {
    var folder = ""
    var names: [String] = []
    /// Seconds since 1970.
    var newest: Int64 = .min
  }

  /// The place of a part, from the name.
  private struct Place {
    let upload: Substring
    let end: Int64

    /// Fails for other names than those of parts.
    init?(_ name: String) {
      let folders = name.parts(at: "/")
      guard folders.count == 3, let end = Int64(folders[2]), end > 0 else { return nil }
      (upload, self.end) = (folders[1], end)
    }
  }
}
