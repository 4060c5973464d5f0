import FerryProtocol

extension ShellCore {
  /// Answers a call of `ferry.js`.
  func answer(
    _ call: RequestGate.Call, of page: Page, _ head: RequestHead, _ body: [UInt8]
  ) async -> ShellResponse {
    switch call {
    case .events:
      guard let channel = page.open() else { return .empty(403) }
      await handle(.connected, of: page.number)
      return ShellResponse(
        status: 200, fields: [("Content-Type", "application/x-ndjson")], body: .lines(channel),
        keepsConnection: false)
    case .ready:
      await handle(.ready, of: page.number)
      return .json { _ in }
    case .closed:
      await end(page.number, .closed)
      return .json { _ in }
    case .upload:
      let type = head["content-type"] ?? "application/octet-stream"
      let address = page.files.add(body, mediaType: type)
      return .json { $0.member("file", address) }
    case .call, .watch, .cancel, .failed:
      do throws(ServiceError) {
        return try await perform(call, of: page, body)
      } catch {
        return .failure(error, status: 200)
      }
    }
  }

  private func perform(
    _ call: RequestGate.Call, of page: Page, _ body: [UInt8]
  ) async throws(ServiceError) -> ShellResponse {
    switch call {
    case .watch:
      let request = try BridgeRequest.watch(body)
      try startFeed(request, of: page)
    case .cancel: page.cancel(try BridgeRequest.cancel(body))
    case .failed: await handle(.failed(try BridgeRequest.failure(body)), of: page.number)
    default:
      let value = try await result(of: try BridgeRequest.call(body), on: page)
      return .json { $0.member("value", value) }
    }
    return .json { _ in }
  }

  private func result(
    of request: BridgeRequest.Call, on page: Page
  ) async throws(ServiceError) -> ServiceValue {
    let service = try service(of: request, on: page)
    guard let handler = service.handler else {
      throw ServiceError("only_watch", "the service \(service.name) is for ferry.watch only")
    }
    guard page.beginCall() else {
      throw ServiceError("too_many", "a page has at most \(Page.callsMax) calls at once")
    }
    defer { page.endCall() }
    do {
      return try checked(try await handler(serviceCall(request, page)), of: service)
    } catch {
      throw explained(error, by: service)
    }
  }

  private func startFeed(
    _ request: BridgeRequest.Call, of page: Page
  ) throws(ServiceError) {
    let service = try service(of: request, on: page)
    guard let feed = service.feed else {
      throw ServiceError("only_call", "the service \(service.name) is for ferry.call only")
    }
    let (watch, call) = (request.watch, serviceCall(request, page))
    try page.watch(watch) { [self] channel in
      do {
        for try await value in try await feed(call) {
          let value = try checked(value, of: service)
          channel.send(BridgeLine.value(value, watch: watch), ofWatch: watch)
        }
        if Task.isCancelled { return }
        channel.send(BridgeLine.end(watch: watch), ofWatch: watch, isLast: true)
      } catch {
        let error = explained(error, by: service)
        if Task.isCancelled { return }
        channel.send(BridgeLine.failure(error, watch: watch), ofWatch: watch, isLast: true)
      }
    }
  }

  /// Returns the service of a request, after the checks of access and of the argument's form.
  private func service(
    of request: BridgeRequest.Call, on page: Page
  ) throws(ServiceError) -> Service {
    let service = try services.service(request.service, declared: page.version.services)
    if let fault = service.argument.fault(in: request.argument) {
      throw ServiceError("invalid_argument", "\(service.name): \(fault)")
    }
    return service
  }

  private func serviceCall(_ request: BridgeRequest.Call, _ page: Page) -> ServiceCall {
    ServiceCall(argument: request.argument, bundle: page.version, files: page.files)
  }

  private func checked(_ value: ServiceValue, of service: Service) throws -> ServiceValue {
    guard let fault = service.result.fault(in: value) else { return value }
    throw ServiceError("invalid_result", "\(service.name): \(fault)")
  }

  private func explained(_ error: any Error, by service: Service) -> ServiceError {
    let explained = ServiceError(error)
    if explained.code == "failed" || explained.code == "invalid_result" {
      log(.serviceFailed(service.name, String(describing: error)))
    }
    return explained
  }
}
