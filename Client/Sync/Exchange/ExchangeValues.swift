import FerryProtocol

/// Actions and events of an ``Exchange``. They name packets and records; the driver has the bytes.
extension Exchange {
  /// The kind of a round.
  enum Kind: Sendable, Equatable {
    /// Pulls until the head is reached.
    case pull
    /// Pulls as a part of other work, without a report in the log.
    case catchUp
    /// Pulls, then sends the pending operations.
    case push
    /// Sends the pending operations. Pulls only if the server requires it.
    case send
    /// Pulls, sends, and pulls the others' changes since. Skips the first pull if a live connection has just
    /// reported this head, and nothing is to be pulled.
    case sync(trusting: SequenceNumber?)

    /// True if the round sends pending operations.
    var sends: Bool { self != .pull && self != .catchUp }
  }

  /// A request over the network, or a pause: others use the replica meanwhile.
  enum Request: Sendable, Equatable {
    /// The changes after a cursor.
    case page(Cursor?, OwnNames)
    /// The whole state of some records.
    case records([RecordKey])
    case createSpace
    case packet(Int64)
    /// A small request, to see whether any reaches the server.
    case probe(RecordKey)
    /// The comparison of tables that may have unrecorded writes.
    case compare
    /// The names of devices.
    case names
    case pause(Duration)
  }

  /// A step on the replica's file, in one transaction at most.
  enum Step: Sendable, Equatable {
    /// Begins a pull unless a live connection shows that none is needed.
    case begin(trusting: SequenceNumber?)
    case beginPull
    /// Reads the next records to fetch; the first time, also those rejected by the server before.
    case nextRecords(Int, isFirst: Bool)
    case stageRecords([RecordKey])
    /// Omits records rejected by the server; without keys, all that are not fetched yet.
    case leaveOut([RecordKey], Problem)
    case stage
    case discardPages
    /// Applies the list; `isFilled` after a first list was filled in.
    case apply(isFilled: Bool)
    case fillSlice
    /// Begins a pull from the start, because the server cannot continue from the cursor.
    case replaceRows(Problem)
    case renewIdentity(ProblemCode, because: String?)
    /// Reads whether the server has had the space before.
    case readIsFound
    case findUnrecorded
    case beginPush
    case prepareUploads
    /// Reads packets to send, and freezes new ones.
    case freeze(besides: Set<Int64>, room: Int, PacketCut)
    case confirm(Int64)
    case refuseWrites(String)
    /// Reads the facts about a packet that cannot be sent.
    case examine(Int64)
    case reopen(Int64)
    case quarantineNamed(Int64, [Refusal])
    case quarantine(Int64, RefusalCode, String)
    /// Begins a pull if the server has changes not applied yet.
    case look
    /// Reads whether operations or records are left to exchange.
    case readIsMore
    case finish
    case fail(Failure)
  }

  /// The end of a request or step.
  enum Event: Sendable {
    case done(Step)
    case begun(PullStart?)
    case pullBegun(PullStart)
    case keys([RecordKey])
    case records([RecordKey])
    case page(PageHead, bytes: Int)
    case pageIsMalformed(MalformedMessage)
    case filling
    case paused
    case filled(pause: Duration?)
    case applied(AppliedPull)
    case isFound(Bool)
    case spaceCreated
    case unrecorded(tables: Int)
    case compared(recorded: Int, isAny: Bool)
    case pushBegun(newest: Int64, isChainSentAgain: Bool)
    /// Packets to send; `pending` counts the operations at the beginning of a round of sending.
    case frozen([Int64], pending: Int, buffered: Int)
    case answered(Int64)
    case confirmed([PacketReceipt])
    case examined(PacketFacts?)
    case quarantined(Int)
    case probed
    case isMore(Bool)
    case finished(hasNames: Bool)
    case named
    case failed(Request, Failure)
  }

  /// The reason why a request failed, after all retries.
  enum Failure: Sendable, Equatable {
    case error(ReplicaError)
    /// A proxy answered instead of the server.
    case foreign(ForeignAnswer)

    /// The error for the caller.
    var error: any Error {
      switch self {
      case .error(let error): error
      case .foreign(let answer): answer
      }
    }

    /// The server's problem, if it rejected the request.
    var problem: Problem? {
      if case .error(.refused(let problem)) = self { problem } else { nil }
    }

    static func refused(_ problem: Problem) -> Self { .error(.refused(problem)) }
  }

  /// The next actions. Requests run at once, beside each other; steps run in their order. Without any, the
  /// driver waits for a request under way, and ends if there is none.
  struct Next: Sendable, Equatable {
    var requests: [Request] = []
    var steps: [Step] = []
    var progress: SyncProgress?

    static let wait = Next()
    static func request(_ request: Request) -> Next { Next(requests: [request]) }
    static func step(_ step: Step) -> Next { Next(steps: [step]) }
  }

  /// The result of an event for a part of the exchange.
  enum Turn: Sendable, Equatable {
    case next(Next)
    /// The part is complete.
    case over
    /// A push needs a pull before it continues, perhaps from the start.
    case pull(replacing: Problem?)
    /// The round fails after a step.
    case fail(Failure, after: Step?)

    static let wait = Turn.next(.wait)
    static func request(_ request: Request) -> Turn { .next(.request(request)) }
    static func step(_ step: Step) -> Turn { .next(.step(step)) }
    static func fail(_ failure: Failure) -> Turn { .fail(failure, after: nil) }
  }
}

/// Facts about a packet that cannot be sent.
struct PacketFacts: Sendable, Equatable {
  /// The bytes of the packet, and of all operations of the packet's first transaction.
  var bytes: Int
  var transactionBytes: Int
  var operations: Int
  var transactions: Int
  /// A record of the packet.
  var key: RecordKey
}
