import FerryPlatform
import FerryProtocol

/// The handlers of requests, by topic. The table of routes names their methods.
struct Handlers: Sendable {
  // The server.
  let status: StatusHandler
  let console = ConsoleHandler()
  let tokens: TokenHandler
  let audit: AuditHandler

  // The records of a space.
  let spaces: SpaceHandler
  let schema: SchemaHandler
  let packets: PacketHandler
  let changes: ChangeHandler
  let events: EventHandler
  let deviceNames: DeviceNameHandler
  let members: MemberHandler

  // Missions and bundles.
  let missions: MissionHandler
  let bundles: BundleHandler
  let content: ContentHandler

  // The views of administrators.
  let spaceViews: SpaceViewHandler
  let recordViews: RecordViewHandler
  let feed: FeedHandler

  init(
    _ parts: SyncService.Parts, _ core: ServiceCore, _ access: RequestAccess,
    memory: AnswerMemory, inspection: InspectionKeeper, lifecycle: ServiceLifecycle
  ) {
    let streams = EventStreams(limit: parts.streamLimit, perAddress: parts.addressStreamLimit)
    status = StatusHandler(core, parts, streams: streams, lifecycle: lifecycle)
    tokens = TokenHandler(core: core)
    audit = AuditHandler(core: core)

    let observer = DeviceObserver(inspection: inspection, clock: parts.clock)
    let committer = PacketCommitter(
      store: parts.store, clock: parts.clock, metrics: parts.metrics, log: parts.log,
      memory: parts.memory, executor: parts.executor)
    spaces = SpaceHandler(core: core)
    schema = SchemaHandler(core: core)
    packets = PacketHandler(
      core: core, access: access, committer: committer, observer: observer)
    changes = ChangeHandler(core: core, observer: observer)
    events = EventHandler(
      core: core, gate: parts.gate, hub: parts.hub, streams: streams, lifecycle: lifecycle)
    deviceNames = DeviceNameHandler(core: core)
    members = MemberHandler(core: core, gate: parts.gate, userSpaces: parts.userSpaces)

    let calls = MissionCalls(core: core, missions: parts.missions)
    missions = MissionHandler(core: core, missions: calls, memory: memory)
    bundles = BundleHandler(core: core)
    content = ContentHandler(
      core: core, access: access, missions: calls, uploads: UploadShares(clock: parts.clock),
      budget: parts.memory, executor: parts.executor)

    spaceViews = SpaceViewHandler(core: core, inspection: inspection)
    recordViews = RecordViewHandler(core: core)
    feed = FeedHandler(core: core)
  }
}
