#if DEBUG
  import SwiftUI

  #Preview("Plans") { ScenePreview(.plans) }
  #Preview("Slow") { ScenePreview(.slow) }
  #Preview("Offline") { ScenePreview(.offline) }
  #Preview("Offline later") { ScenePreview(.offlineLater) }
  #Preview("Logged out") { ScenePreview(.loggedOut) }
  #Preview("Locked") { ScenePreview(.locked) }
  #Preview("Invited") { ScenePreview(.invited) }
  #Preview("Plus-ones") { ScenePreview(.bringing) }
  #Preview("Waiting list") { ScenePreview(.waiting) }
  #Preview("Cancelled") { ScenePreview(.cancelled) }
  #Preview("Hosting") { ScenePreview(.hosting) }
  #Preview("Unsent") { ScenePreview(.unsent) }
  #Preview("Refused") { ScenePreview(.refused) }
  #Preview("Superseded") { ScenePreview(.superseded) }
  #Preview("Friends") { ScenePreview(.friends) }
  #Preview("Inbox") { ScenePreview(.inbox) }
  #Preview("Creating") { ScenePreview(.creating) }
  #Preview("Profile") { ScenePreview(.profile) }
  #Preview("Logging out") { ScenePreview(.loggingOut) }

  private struct ScenePreview: View {
    @State private var scene: PreviewScene

    init(_ state: PreviewState) {
      let export = Bundle.main.url(forResource: "MusterPreview", withExtension: nil)
      _scene = State(initialValue: PreviewScene(state, export: export))
    }

    var body: some View { RootView(account: scene.account).task { await scene.prepare() } }
  }
#endif
