import FerryProtocol

/// Checks that content is fetched once, apart from bytes in flight at an interruption: bytes
/// fetched ≤ content + interruptions × the parts in flight. The bytes that arrived together with
/// the end of a part are in flight, too: they are of the next part. Content removed on purpose or
/// lost by a disk is fetched again.
///
/// A file may be removed if at some moment no row named it, although another mission names it again
/// a moment later. The oracle looks at the rows only now and then. So it accepts the removal if no
/// mission has named the content from the last look until now.
package struct FetchedOnce: MissionOracle {
  package static let name = "fetched-once"

  private struct Account: Hashable {
    var device: String
    var hash: ContentHash
  }

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
    var allowed: Int64 = 0
  }

  private let marksFrom: Int64
  private let transfers: Int64
  /// The most bytes to arrive at once.
  private let arrivalMax: Int64
  private var items: [ContentHash: PublishedItem] = [:]
  /// Content of each mission, of all versions.
  private var contents: [MissionID: Set<ContentHash>] = [:]
  private var balances: [Account: Balance] = [:]
  /// The missions that named each content at the last look at a device.
  private var owners: [String: [ContentHash: Set<MissionID>]] = [:]

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
    case .looked(let device, _, let evidence):
      // Content without a row is removed, and fetched again when it is requested again.
      owners[device] = evidence.owners
      for account in balances.keys
      where account.device == device && evidence.owners[account.hash] == nil {
        balances[account] = nil
      }
    case .removing(let device, let hash, let now):
      if now.isDisjoint(with: owners[device]?[hash] ?? []) {
        balances[Account(device: device, hash: hash)] = nil
      }
    case .copied(let device, let original):
      owners[device] = owners[original]
      for (account, balance) in balances where account.device == original {
        balances[Account(device: device, hash: account.hash)] = balance
      }
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
    let account = Account(device: device, hash: hash)
    var balance = balances[account, default: Balance(fetched: 0, allowed: item.size)]
    balance.fetched += bytes
    balances[account] = balance
    guard balance.fetched > balance.allowed else { return [] }
    return [
      Violation(
        oracle: Self.name,
        "\(device) fetched \(balance.fetched) bytes of content \(hash) of \(item.size) bytes; "
          + "the network lost \(balance.allowed - item.size)")
    ]
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
    let account = Account(device: device, hash: hash)
    balances[account, default: Balance(fetched: 0, allowed: item.size)].allowed +=
      bytes(loss, of: item)
  }

  private mutating func allowAll(_ loss: Loss, on device: String) {
    for account in Array(balances.keys) where account.device == device {
      allow(loss, of: account.hash, on: device)
    }
  }
}
