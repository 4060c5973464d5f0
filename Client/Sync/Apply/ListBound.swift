import FerryProtocol

/// Ends a list of pages if the server never does (SPEC.md §22): a pure machine.
///
/// Each page must move the list on. A list then ends, since the head bounds it, but a hostile
/// server can name any head, and move it with each page. So small pages, reached heads and all
/// pages of a list are counted.
///
/// ```swift
/// var bound = ListBound()
/// bound.begin(at: -1)
/// bound.accept(reached: 5, head: 9, bytes: 1 << 20)  // nil: the list goes on
/// bound.accept(reached: 5, head: 9, bytes: 1 << 20)  // .noProgress
/// ```
struct ListBound: Sendable, Equatable {
  /// The reason to end a list before the last page.
  enum Fault: Error, Equatable {
    /// The page does not move the list on, or passes the head of the list.
    case noProgress(from: SequenceNumber, to: SequenceNumber, head: SequenceNumber)
    /// The list has had too many pages; has their number.
    case endless(pages: Int)
  }

  /// The most pages of a list. A space within the default quotas has fewer.
  static let pagesMax = 65_536
  /// The most small pages of a list. A server closes a page at a limit of changes or of bytes. So
  /// only the last page is small, and pages with changes for other devices.
  static let smallPagesMax = 1_000
  /// The smallest size of a page that is not small.
  static let smallPageBytes = 64 << 10
  /// The most heads that a list reaches: the newest one at the beginning of the list, then the
  /// newest one when the list reached the first, and so on.
  static let headsMax = 64

  private let smallPagesMax: Int
  private var reached: SequenceNumber = -1
  private var head: SequenceNumber?
  private var pages = 0
  private var smallPages = 0
  private var heads = 0

  /// - Parameter smallPagesMax: the most small pages.
  init(smallPagesMax: Int = Self.smallPagesMax) { self.smallPagesMax = smallPagesMax }

  /// Begins the list at a place, perhaps again. The pages so far still count.
  mutating func begin(at place: SequenceNumber) { (reached, head) = (place, nil) }

  /// Counts a page that is not the last one. Returns the reason if the list must not go on.
  ///
  /// - Parameters:
  ///   - place: the place reached by the page.
  ///   - head: the newest place when the page was read.
  ///   - bytes: the size of the page. The stated number of changes may be a lie.
  mutating func accept(reached place: SequenceNumber, head newest: SequenceNumber, bytes: Int)
    -> Fault?
  {
    guard place > reached, place <= newest else {
      return .noProgress(from: max(0, reached), to: place, head: newest)
    }
    reached = place
    pages += 1
    if bytes < Self.smallPageBytes { smallPages += 1 }
    if place >= head ?? newest {
      heads += 1
      head = newest
    } else if head == nil {
      head = newest
    }
    let isOver = pages > Self.pagesMax || smallPages > smallPagesMax || heads > Self.headsMax
    return isOver ? .endless(pages: pages) : nil
  }
}

extension ReplicaError {
  /// Converts the fault of a list.
  ///
  /// - Parameters:
  ///   - list: the list, for the user.
  ///   - next: the next step if it does not end.
  init(_ fault: ListBound.Fault, of list: String, next: String) {
    switch fault {
    case .noProgress(let from, let to, let head):
      self = .unexpectedAnswer(
        status: 200,
        "\(list) without progress: it reached \(from) of \(head), and the next page ends at \(to)")
    case .endless(let pages):
      self = .unfinished("the server has sent \(pages) pages of \(list), and more follow; \(next)")
    }
  }
}
