import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct HeadMovesTests {
  /// Returns the heads received by listeners while `tell` runs.
  static func heads(_ tell: (HeadMoves) -> Void) async -> [SequenceNumber] {
    let moves = HeadMoves()
    let stream = moves.stream()
    tell(moves)
    moves.finish()
    return await stream.reduce(into: []) { $0.append($1.head) }
  }

  static func move(_ head: SequenceNumber) -> HeadMove { HeadMove(space: 1, head: head) }

  @Test("moves that arrive late or twice are reported once")
  func order() async {
    let told = await Self.heads { moves in
      for head in [SequenceNumber(1), 3, 2, 3, 4] { moves.publish(Self.move(head)) }
    }
    #expect(told == [1, 3, 4])
  }

  @Test("after a failover that lost commits, the lower head and all later heads are reported")
  func failover() async {
    let told = await Self.heads { moves in
      moves.publish(Self.move(302))
      moves.republish([Self.move(2)])
      moves.publish(Self.move(3))
      moves.publish(Self.move(4))
    }
    #expect(told == [302, 2, 3, 4])
  }

  @Test("after a space is needed again, a lower head is reported")
  func neededAgain() async {
    let told = await Self.heads { moves in
      moves.publish(Self.move(302))
      moves.watch(1)
      moves.publish(Self.move(3))
      moves.publish(Self.move(2))
    }
    #expect(told == [302, 3])
  }

  @Test("heads that are polled are reported only if they differ")
  func corrects() async {
    let told = await Self.heads { moves in
      moves.publish(Self.move(302))
      moves.correct([Self.move(302)])
      moves.correct([Self.move(2)])
      moves.correct([Self.move(2)])
      moves.publish(Self.move(3))
    }
    #expect(told == [302, 2, 3])
  }
}
