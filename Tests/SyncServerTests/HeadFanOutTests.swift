import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct HeadFanOutTests {
  typealias Board = HeadFanOut<String>

  static func space(_ id: Int64, head: SequenceNumber, epoch: UInt64 = 7) -> SpaceSummary {
    SpaceSummary(id: id, name: SpaceName.known("space\(id)"), epoch: Epoch(epoch), head: head)
  }

  /// Returns a board on which `names` listen to space 1 at head 5.
  static func board(_ names: String...) -> Board {
    var board = Board()
    for name in names {
      let number = board.add(name, to: space(1, head: 5))
      _ = board.see(space(1, head: 5))
      _ = board.greet(number, of: 1, heard: nil)
    }
    return board
  }

  @Test("an event is a head with its epoch, and its id is the head")
  func event() {
    #expect(
      String(decoding: Board.event(epoch: Epoch(7), head: 42), as: UTF8.self)
        == "id: 42\nevent: head\ndata: {\"epoch\":\"0000000000000007\",\"head\":\"42\"}\n\n")
  }

  @Test("a new listener receives the head at once, unless it knows the head")
  func greets() {
    var board = Board()
    let first = board.add("a", to: Self.space(1, head: 5))
    #expect(board.see(Self.space(1, head: 6)).delivery == nil)
    let greeting = board.greet(first, of: 1, heard: 5)
    #expect(greeting?.bytes == Board.event(epoch: Epoch(7), head: 6))
    #expect(greeting?.listeners == ["a"])
    let second = board.add("b", to: Self.space(1, head: 6))
    #expect(board.see(Self.space(1, head: 6)).delivery == nil)
    #expect(board.greet(second, of: 1, heard: 6) == nil)
  }

  @Test("a move reaches all listeners of its space and no others")
  func moves() {
    var board = Self.board("a", "b")
    let other = board.add("c", to: Self.space(2, head: 1))
    _ = board.see(Self.space(2, head: 1))
    _ = board.greet(other, of: 2, heard: nil)
    let step = board.move(HeadMove(space: 1, head: 6))
    #expect(step.delivery?.listeners.sorted() == ["a", "b"])
    #expect(step.startsTurns)
    #expect(board.move(HeadMove(space: 3, head: 9)).delivery == nil)
    let elsewhere = board.move(HeadMove(space: 2, head: 2))
    #expect(elsewhere.delivery?.listeners == ["c"])
    #expect(!elsewhere.startsTurns, "one timer serves all spaces")
  }

  @Test("moves within a window are sent as one event at its end; windows without moves end")
  func coalesces() {
    var board = Self.board("a")
    #expect(board.move(HeadMove(space: 1, head: 6)).delivery != nil)
    for head in SequenceNumber(7)...500 {
      let step = board.move(HeadMove(space: 1, head: head))
      #expect(step.delivery == nil)
      #expect(!step.startsTurns)
    }
    let end = board.endTurn()
    #expect(end.deliveries.map(\.bytes) == [Board.event(epoch: Epoch(7), head: 500)])
    #expect(end.goesOn)
    #expect(board.move(HeadMove(space: 1, head: 501)).delivery == nil)
    #expect(board.endTurn().deliveries.count == 1)
    let last = board.endTurn()
    #expect(last.deliveries.isEmpty)
    #expect(!last.goesOn)
    #expect(board.move(HeadMove(space: 1, head: 502)).delivery != nil, "quiet: at once again")
  }

  @Test("a head that is reported twice is sent once")
  func repeats() {
    var board = Self.board("a")
    #expect(board.move(HeadMove(space: 1, head: 5)).delivery == nil)
    #expect(board.see(Self.space(1, head: 5)).delivery == nil)
    #expect(board.see(Self.space(1, head: 4)).delivery == nil, "an old answer of the store")
  }

  @Test("a lower head is looked up, and sent when the store confirms it")
  func goesBack() {
    var board = Self.board("a")
    let step = board.move(HeadMove(space: 1, head: 2))
    #expect(step.delivery == nil)
    #expect(step.suspect == SpaceName("space1"))
    let restored = board.replace(Self.space(1, head: 2, epoch: 8))
    #expect(restored.delivery?.bytes == Board.event(epoch: Epoch(8), head: 2))
  }

  @Test("a removed listener receives nothing, and the last one removes its space")
  func removes() {
    var board = Self.board("a", "b")
    board.remove(1, from: 1)
    #expect(board.move(HeadMove(space: 1, head: 6)).delivery?.listeners == ["b"])
    board.remove(2, from: 1)
    #expect(board.listenerCount == 0)
    #expect(board.move(HeadMove(space: 1, head: 7)).delivery == nil)
    board.remove(2, from: 1)
  }

  @Test("moves before the greeting are part of it and are not sent before it")
  func moveBeforeGreeting() {
    var board = Self.board("a")
    let late = board.add("b", to: Self.space(1, head: 5))
    #expect(board.move(HeadMove(space: 1, head: 9)).delivery?.listeners == ["a"])
    #expect(
      board.greet(late, of: 1, heard: 5)?.bytes == Board.event(epoch: Epoch(7), head: 9))
  }

  // MARK: Crowds

  /// Adds greeted listeners to a space at head 5.
  private static func crowd(_ count: Int, in id: Int64, of board: inout Board) {
    for index in 0..<count {
      let number = board.add("\(id)/\(index)", to: space(id, head: 5))
      _ = board.see(space(id, head: 5))
      _ = board.greet(number, of: id, heard: nil)
    }
  }

  /// Returns how often each space got an event during some turns, if all of them move before each turn.
  private static func sent(_ board: inout Board, _ spaces: [Int64], turns: Int) -> [Int64: Int] {
    var sent: [Int64: Int] = [:]
    let names = Dictionary(uniqueKeysWithValues: spaces.map { ("\($0)", $0) })
    func note(_ delivery: Board.Delivery) {
      guard let first = delivery.listeners.first?.split(separator: "/").first else { return }
      sent[names[String(first)] ?? 0, default: 0] += 1
    }
    for turn in 0..<turns {
      for space in spaces {
        let step = board.move(HeadMove(space: space, head: 6 + SequenceNumber(turn)))
        if let delivery = step.delivery { note(delivery) }
      }
      for delivery in board.endTurn().deliveries { note(delivery) }
    }
    return sent
  }

  @Test("the window of a space is as long as its listeners are many")
  func widens() {
    var board = Board()
    let count = 10 * Board.eventsOfTurn
    Self.crowd(count, in: 1, of: &board)
    #expect(Self.sent(&board, [1], turns: 100) == [1: 11])
  }

  @Test("a small space beside a crowd gets events in nearly every turn")
  func neighbour() {
    var board = Board()
    Self.crowd(20 * Board.eventsOfTurn, in: 1, of: &board)
    Self.crowd(3, in: 2, of: &board)
    let sent = Self.sent(&board, [1, 2], turns: 200)
    #expect((9...11).contains(sent[1] ?? 0), "\(sent)")
    #expect(sent[2] ?? 0 >= 200, "\(sent)")
  }

  @Test("many busy spaces share the events of a turn")
  func shares() {
    var board = Board()
    let spaces = (1...50).map(Int64.init)
    for space in spaces { Self.crowd(100, in: space, of: &board) }
    let turns = 400
    let sent = Self.sent(&board, spaces, turns: turns)
    let events = sent.values.reduce(0) { $0 + $1 * 100 }
    // The first moves are passed on at once.
    let most = turns * Board.eventsOfTurn * 11 / 10 + 2 * 5_000
    #expect((turns * Board.eventsOfTurn * 9 / 10...most).contains(events), "\(events)")
    let counts = sent.values.sorted()
    #expect(counts.count == 50)
    #expect(counts[49] - counts[0] <= counts[0], "\(counts)")
  }

  @Test("a space whose last listener leaves within the window leaves no load behind")
  func leaves() {
    var board = Board()
    Self.crowd(5 * Board.eventsOfTurn, in: 1, of: &board)
    _ = board.move(HeadMove(space: 1, head: 6))
    for number in 1...(5 * Board.eventsOfTurn) { board.remove(number, from: 1) }
    Self.crowd(1, in: 3, of: &board)
    #expect(!board.move(HeadMove(space: 3, head: 6)).startsTurns, "the timer runs already")
    #expect(board.endTurn().goesOn == false)
    Self.crowd(Board.eventsOfTurn, in: 2, of: &board)
    #expect(Self.sent(&board, [2], turns: 50) == [2: 50])
  }
}
