import Ferry

/// The rows of missions in memory, for one process.
actor MemoryStore: MissionStore {
  private struct Kept {
    var row: MissionRow
    var manifest: [UInt8]?
    var files: [MissionFileRow] = []
  }

  private struct Chunk {
    var part: StoredPart
    var size: Int64
  }

  private var kept: [Kept] = []
  private var ends: [MissionEnding] = []
  private var maps: [ContentHash: ChunkMap] = [:]
  private var objects: [ContentHash: ObjectRow] = [:]
  private var chunks: [ContentHash: [Chunk]] = [:]
  private var trusted: [[UInt8]] = []
  private var settings: [String: [UInt8]] = [:]
  private var turn: Int64 = 0

  private func place(_ version: MissionVersion) -> Int? {
    kept.firstIndex { $0.row.version == version }
  }

  private func nextTurn() -> Int64 {
    turn += 1
    return turn
  }

  // MARK: Missions

  func missions() -> [MissionRow] { kept.map(\.row) }

  func add(_ record: MissionRecord, at: Int64) -> MissionRow {
    ends.removeAll { $0.version.mission == record.id }
    if let old = kept.first(where: { $0.row.record == record })?.row { return old }
    kept.removeAll { $0.row.record.id == record.id && !$0.row.isComplete }
    let row = MissionRow(record: record, asked: nextTurn(), askedAt: at)
    kept.append(Kept(row: row))
    return row
  }

  func setState(_ state: MissionState, reason: MissionError?, of version: MissionVersion) -> Bool {
    guard let place = place(version), !kept[place].row.isComplete else { return false }
    (kept[place].row.state, kept[place].row.reason) = (state, reason)
    return true
  }

  func setDamage(_ damage: MissionError?, of version: MissionVersion) {
    guard let place = place(version), kept[place].row.isComplete else { return }
    kept[place].row.reason = damage
  }

  func setProgress(bytesDone: Int64, itemsDone: Int64, of version: MissionVersion) {
    guard let place = place(version) else { return }
    (kept[place].row.bytesDone, kept[place].row.itemsDone) = (bytesDone, itemsDone)
  }

  func setManifest(
    _ document: [UInt8], _ manifest: MissionManifest, of version: MissionVersion
  ) throws(MissionError) {
    guard let place = place(version) else { throw MissionError(.notFound, "no such version") }
    kept[place].manifest = document
    kept[place].files = manifest.items.enumerated().map {
      MissionFileRow(version: version, place: $0.offset, item: $0.element)
    }
  }

  func manifest(of version: MissionVersion) -> [UInt8]? {
    place(version).flatMap { kept[$0].manifest }
  }

  func complete(_ version: MissionVersion, at: Int64) throws(MissionError) {
    guard let place = place(version) else { throw MissionError(.notFound, "no such version") }
    for other in kept.indices where kept[other].row.record.id == version.mission {
      kept[other].row.isActive = false
    }
    kept[place].row.state = .done
    kept[place].row.reason = nil
    (kept[place].row.isComplete, kept[place].row.isActive) = (true, true)
    (kept[place].row.activation, kept[place].row.completedAt) = (nextTurn(), at)
  }

  func remove(_ version: MissionVersion, ending: MissionEnding?) -> [ContentHash] {
    let hashes = place(version).map { kept[$0].files.map(\.content.hash) } ?? []
    kept.removeAll { $0.row.version == version }
    if let ending { ends.append(ending) }
    let orphans = Set(hashes).filter { !refers(to: $0) }
    for hash in orphans { (objects[hash], chunks[hash], maps[hash]) = (nil, nil, nil) }
    return orphans.sorted()
  }

  func endings() -> [MissionEnding] { ends }

  func forgetEnding(of mission: MissionID) { ends.removeAll { $0.version.mission == mission } }

  // MARK: Files

  func files(of version: MissionVersion) -> [MissionFileRow] {
    place(version).map { kept[$0].files } ?? []
  }

  func file(_ path: String, of version: MissionVersion) -> MissionFileRow? {
    files(of: version).first { $0.path == path }
  }

  func file(url: String) -> MissionFileRow? {
    kept.filter(\.row.isActive).flatMap(\.files).last { $0.url == url }
  }

  // MARK: Content

  func chunkMap(of hash: ContentHash, chunkCount: Int) -> ChunkMap? {
    maps[hash].flatMap { $0.chunkCount == chunkCount ? $0 : nil }
  }

  func setChunkMap(_ map: ChunkMap, of hash: ContentHash) { maps[hash] = map }

  func removeChunkMap(of hash: ContentHash) { maps[hash] = nil }

  func addObject(
    _ object: ObjectRow, chunkSize: Int64, chunks hashes: [ContentHash], path: String?
  ) {
    let content = object.content
    objects[content.hash] = object
    maps[content.hash] = nil
    chunks[content.hash] = hashes.enumerated().map { number, hash in
      let offset = Int64(number) * chunkSize
      let length = Int(min(chunkSize, content.size - offset))
      return Chunk(
        part: StoredPart(content: content, offset: offset, length: length, hash: hash),
        size: chunkSize)
    }
    for place in kept.indices {
      for file in kept[place].files.indices where kept[place].files[file].content == content {
        kept[place].files[file].localPath = path
        kept[place].files[file].completedAt = object.at
      }
    }
  }

  func object(_ hash: ContentHash) -> ObjectRow? { objects[hash] }

  func refers(to hash: ContentHash) -> Bool {
    kept.contains { $0.files.contains { $0.content.hash == hash } }
  }

  func removeObject(_ hash: ContentHash) { (objects[hash], chunks[hash]) = (nil, nil) }

  func part(_ chunk: ContentHash) -> StoredPart? {
    chunks.values.joined().first { $0.part.hash == chunk }?.part
  }

  func chunks(of hash: ContentHash) -> (size: Int64, [ContentHash]) {
    let found = chunks[hash] ?? []
    return (found.first?.size ?? 0, found.map(\.part.hash))
  }

  func contents(of version: MissionVersion) -> [ContentRow] {
    Set(files(of: version).map(\.content)).sorted { $0.hash < $1.hash }
      .map { ContentRow(of: $0, object: objects[$0.hash]) }
  }

  func needed() -> NeededFiles {
    var needed = NeededFiles()
    needed.objects = Set(objects.keys.filter { refers(to: $0) })
    needed.partials = Set(kept.flatMap(\.files).map(\.content.hash))
    needed.bundles = Set(kept.map(\.row.version))
    return needed
  }

  // MARK: Trust

  func signers() -> [[UInt8]] { trusted }

  func trust(_ signer: [UInt8], at: Int64) { trusted = [signer] }

  func trustFirst(_ signer: [UInt8], at: Int64) -> [[UInt8]] {
    if trusted.isEmpty { trusted = [signer] }
    return trusted
  }

  // MARK: Others

  func setting(_ name: String) -> [UInt8]? { settings[name] }

  func makeSetting(_ name: String, _ value: [UInt8]) -> [UInt8] {
    let present = settings[name] ?? value
    settings[name] = present
    return present
  }

  func remakeSetting(_ name: String, _ value: [UInt8]) -> Bool {
    guard kept.isEmpty, objects.isEmpty else { return false }
    settings[name] = value
    return true
  }

  func dataVersion() -> Int64 { 0 }
}
