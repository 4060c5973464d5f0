/// The effect of a loss of power on the unsynced changes of one file.
struct PowerLoss {
  private enum Kind {
    case nothingKept
    case allKept
    /// Those before the cut are kept; the one there is torn.
    case cut(Int)
    case eachByItself
  }

  private let kind: Kind

  init(changeCount: Int, random: () -> UInt64) {
    kind =
      switch random() % 4 {
      case 0: .nothingKept
      case 1: .allKept
      case 2: .cut(Int(random() % UInt64(changeCount)))
      default: .eachByItself
      }
  }

  /// Returns the fate of the change with this index.
  mutating func next(_ index: Int, random: () -> UInt64) -> Fate {
    switch kind {
    case .nothingKept: .lost
    case .allKept: .kept
    case .cut(let cut): index < cut ? .kept : index == cut ? .torn : .lost
    case .eachByItself:
      switch random() % 3 {
      case 0: .lost
      case 1: .kept
      default: .torn
      }
    }
  }

  enum Fate {
    case kept
    case lost
    /// Some of the sectors are kept.
    case torn

    /// The unit written whole by a disk, in bytes.
    static let sector = 512

    /// Writes the surviving part of `written`.
    func write(
      _ written: [UInt8], at offset: Int, to bytes: inout ByteStore, random: () -> UInt64
    ) {
      guard self != .lost, !written.isEmpty else { return }
      var position = 0
      while position < written.count {
        let toBoundary = Self.sector - (offset + position) % Self.sector
        let end = self == .kept ? written.count : min(written.count, position + toBoundary)
        if self == .kept || random() & 1 == 1 {
          written.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            bytes.write(start + position, count: end - position, at: offset + position)
          }
        }
        position = end
      }
    }
  }
}
