import FerryProtocol

/// Checks that content is fetched once, apart from bytes in flight at an interruption: bytes
/// fetched ≤ content + interruptions × the parts in flight. The bytes that arrived together with
/// the end of a part are in flight, too: they are of the next part. Content removed on purpose or
/// lost by a disk is fetched again.
///
/// A file may be removed if at some moment no row named it, although another mission names it again
/// a moment later. The oracle looks at the rows only now and then. So it accepts the removal if no
/// mission has named the content from the last look until now.
///
/// A file without a row may still be on the disk, with damaged bytes. If a mission names it again,
/// the device continues the file, finds the damage at the end of a part, and fetches the part again.
/// So the losses of a content count until the file is gone.
///
/// A backup has the content of that moment, damage included. After a restore, the account of the
/// content is the backup's, too.
package struct FetchedOnce: MissionOracle {
  package static let name = "fetched-once"

  /// The cost of an interruption.
  private enum Loss {
    /// The bytes of one transfer in flight.
    case part
    /// The bytes of all transfers of a file in flight.
    case parts
    case whole
  }

  private struct Balance {
    var fetched: Int64 = 0
    var allowed: Int64
  }

  /// The accounts of a device's disk, or of a copy of it.
  private struct Book {
    var balances: [ContentHash: Balance] = [:]
    /// The missions that named each content at the last look.
    var owners: [ContentHash: Set<MissionID>] = [:]
  }

  private let marksFrom: Int64
  private let transfers: Int64
  /// The most bytes to arrive at once.
  private let arrivalMax: Int64
  private var items: [ContentHash: PublishedItem] = [:]
  /// Content of each mission, of all versions.
  private var contents: [MissionID: Set<ContentHash>] = [:]
  /// By device.
  private var books: [String: Book] = [:]
  /// The books at the moment of each backup, by the backup's name.
  private var backups: [String: Book] = [:]

  package init(marksFrom: Int64, transfers: Int, arrivalMax: Int = 0) {
    (self.marksFrom, self.transfers) = (marksFrom, Int64(transfers))
    self.arrivalMax = Int64(arrivalMax)
  }

  package mutating func see(_ event: MissionRunEvent) -> [Violation] {
    switch event {
    case .publishing(_, let mission, let published):
      for item in published.values.sorted(by: { $0.hash < $1.hash }) {
        // Published with separate parts, or in one part: the larger one counts.
        let known = items[item.hash]?.partSize ?? 0
        items[item.hash] = item
        items[item.hash]?.partSize = max(known, item.partSize)
        contents[mission, default: []].insert(item.hash)
      }
    case .fetched(let device, let hash, let bytes): return fetched(bytes, of: hash, by: device)
    case .broken(let device, let hash): allow(.part, of: hash, on: device)
    case .killed(let device): allowAll(.parts, on: device)
    case .wentBack(let device): allowAll(.whole, on: device)
    case .givenUp(let device, let mission):
      for hash in contents[mission] ?? [] { allow(.whole, of: hash, on: device) }
    case .looked(let device, _, let evidence): look(evidence, at: device)
    case .removing(let device, let hash, let now):
      if now.isDisjoint(with: books[device]?.owners[hash] ?? []) { release(hash, on: device) }
    case .backedUp(let device, let backup): backups[backup] = books[device] ?? Book()
    case .restored(let device, let backup, let isOtherBoot):
      books[device] = backups[backup]
      // The copy lacks bytes in flight. Marks of another boot do not count.
      allowAll(isOtherBoot ? .whole : .parts, on: device)
    case .copied(let device, let original):
      books[device] = books[original]
      // Another machine runs its own system: the product trusts only hashes there.
      allowAll(.whole, on: device)
    case .progress, .rested, .serverWentBack: break
    }
    return []
  }

  private mutating func fetched(
    _ bytes: Int64, of hash: ContentHash, by device: String
  ) -> [Violation] {
    // Manifests are small, and fetched whole.
    guard let item = items[hash] else { return [] }
    var balance = books[device]?.balances[hash] ?? Balance(allowed: item.size)
    balance.fetched += bytes
    books[device, default: Book()].balances[hash] = balance
    guard balance.fetched > balance.allowed else { return [] }
    return [
      Violation(
        oracle: Self.name,
        "\(device) fetched \(balance.fetched) bytes of content \(hash) of \(item.size) bytes; "
          + "the network lost \(balance.allowed - item.size)")
    ]
  }

  /// Content without a row and a file is fetched whole when it is requested again.
  private mutating func look(_ evidence: MissionEvidence, at device: String) {
    var book = books[device] ?? Book()
    book.owners = evidence.owners
    books[device] = book
    for hash in book.balances.keys where evidence.owners[hash] == nil {
      if evidence.stored.contains(hash) {
        release(hash, on: device)
      } else {
        books[device]?.balances[hash] = nil
      }
    }
  }

  /// Allows a device to fetch a content from scratch, or to continue the file if it is still there.
  private mutating func release(_ hash: ContentHash, on device: String) {
    guard let item = items[hash], let balance = books[device]?.balances[hash] else { return }
    books[device]?.balances[hash] = Balance(
      allowed: max(item.size, balance.allowed - balance.fetched))
  }

  private func bytes(_ loss: Loss, of item: PublishedItem) -> Int64 {
    let part = item.size < marksFrom ? item.size : min(item.size, item.partSize + arrivalMax)
    return switch loss {
    case .part: part
    case .parts: min(item.size, part * transfers)
    case .whole: item.size
    }
  }

  private mutating func allow(_ loss: Loss, of hash: ContentHash, on device: String) {
    guard let item = items[hash] else { return }
    var balance = books[device]?.balances[hash] ?? Balance(allowed: item.size)
    balance.allowed += bytes(loss, of: item)
    books[device, default: Book()].balances[hash] = balance
  }

  private mutating func allowAll(_ loss: Loss, on device: String) {
    for hash in Array((books[device]?.balances ?? [:]).keys) { allow(loss, of: hash, on: device) }
  }
}
