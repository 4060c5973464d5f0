import FerryHTTPServer
import FerryProtocol

/// Answers requests about one space: create it, or show the head.
struct SpaceHandler: Sendable {
  let core: ServiceCore

  func create(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    info(try await core.makeSpace(name, by: admission.principal), admission.role)
  }

  func show(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    info(try await core.current(name), admission.role)
  }

  private func info(_ space: SpaceSummary, _ role: Role) -> HTTPResponse {
    .json(core.info(space, role))
  }
}
