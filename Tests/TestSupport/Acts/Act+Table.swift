extension Act {
  /// One line for each operation, and further ones for other kinds of things that it can name. `{id:event}` is the
  /// path's parameter and the name of the thing that drivers put there. Paths without a leading slash are below
  /// `/api/v1/`.
  ///
  /// `token`: if it is `needed`, the route refuses calls without a token, with garbage, with an expired token, and with
  /// a token of an ended session or a deleted user. If it is `optional`, calls without a token are served. Otherwise the
  /// token is ignored, and all callers get the same. `slugs`: for the statuses that are refusals, of all callers or of
  /// one.
  static let table = """
    name                       method path                                                   token    stranger friend invitee blocked cohost owner slugs
    getLiveness                GET    /health/live                                           none     200      200    200     200     200    200
    getReadiness               GET    /health/ready                                          none     200      200    200     200     200    200
    getDocument                GET    /openapi.yaml                                          none     200      200    200     200     200    200
    getDocumentAsJson          GET    /openapi.json                                          none     200      200    200     200     200    200
    getReference               GET    /docs                                                  none     200      200    200     200     200    200
    getPicture                 GET    /pictures/{key:picture}                                none     200      200    200     200     200    200
    getCalendarFeed            GET    /calendars/{file:calendar}                             none     200      200    200     200     200    200
    getAppleAppLinks           GET    /.well-known/apple-app-site-association                none     404      404    404     404     404    404   404:app-links-not-configured
    getAndroidAppLinks         GET    /.well-known/assetlinks.json                           none     404      404    404     404     404    404   404:app-links-not-configured
    getSharePage               GET    /e/{token:linkToken}                                   none     200      200    200     200     200    200
    answerOnSharePage          POST   /e/{token:linkToken}                                   none     415      415    415     415     415    415   415:unsupported-media-type
    getReportPage              GET    /e/{token:linkToken}/report                            none     200      200    200     200     200    200
    reportOnSharePage          POST   /e/{token:linkToken}/report                            none     415      415    415     415     415    415   415:unsupported-media-type
    getVisitorPage             GET    /g/{token:visit}                                       none     200      200    200     200     200    200
    actOnVisitorPage           POST   /g/{token:visit}                                       none     415      415    415     415     415    415   415:unsupported-media-type
    getUnsubscribePage         GET    /g/{token:visit}/unsubscribe                           none     200      200    200     200     200    200
    unsubscribeVisitor         POST   /g/{token:visit}/unsubscribe                           none     200      200    200     200     200    200
    getVerifyingPage           GET    /verify/{token:mailToken}                              none     404      404    404     404     404    404
    verifyOnPage               POST   /verify/{token:mailToken}                              none     415      415    415     415     415    415   415:unsupported-media-type
    getUndoingPage             GET    /undo/{token:mailToken}                                none     404      404    404     404     404    404
    undoOnPage                 POST   /undo/{token:mailToken}                                none     415      415    415     415     415    415   415:unsupported-media-type
    getOptOutPage              GET    /m/{token:optOut}                                      none     200      200    200     200     200    200
    optOutOfMails              POST   /m/{token:optOut}                                      none     200      200    200     200     200    200
    getVisitorCalendar         GET    /calendars/visitors/{file:visitorCalendar}             none     200      200    200     200     200    200
    register                   POST   auth/register                                          none     201      201    201     201     201    201
    login                      POST   auth/login                                             none     200      200    200     200     200    200
    refresh                    POST   auth/refresh                                           none     200      200    200     200     200    200
    requestPasswordReset       POST   auth/password-reset                                    none     202      202    202     202     202    202
    confirmPasswordReset       POST   auth/password-reset/confirm                            none     422      422    422     422     422    422   422:invalid-fields
    verifyEmail                POST   auth/email/verify                                      optional 422      422    422     422     422    422   422:invalid-fields
    undoEmailChange            POST   auth/email/undo                                        none     422      422    422     422     422    422   422:invalid-fields
    requestCode                POST   auth/code                                              none     202      202    202     202     202    202
    confirmCode                POST   auth/code/confirm                                      none     401      401    401     401     401    401   401:invalid-code
    signInWithApple            POST   auth/apple                                             none     401      401    401     401     401    401   401:invalid-identity-token
    signInWithGoogle           POST   auth/google                                            none     401      401    401     401     401    401   401:invalid-identity-token
    notifyOfAppleAccount       POST   auth/apple/notifications                               none     401      401    401     401     401    401   401:invalid-notification
    unlinkApple                DELETE auth/apple                                             needed   204      204    204     204     204    204
    unlinkGoogle               DELETE auth/google                                            needed   204      204    204     204     204    204
    linkApple                  POST   auth/apple/link                                        needed   401      401    401     401     401    401   401:invalid-identity-token
    linkGoogle                 POST   auth/google/link                                       needed   401      401    401     401     401    401   401:invalid-identity-token
    listSessions               GET    auth/sessions                                          needed   200      200    200     200     200    200
    endSession                 DELETE auth/sessions/{id:session}                             needed   404      404    404     404     404    204   404:session-not-found
    logOut                     POST   auth/logout                                            needed   204      204    204     204     204    204
    changePassword             POST   auth/password                                          needed   204      204    204     204     204    204
    getMe                      GET    users/me                                               needed   200      200    200     200     200    200
    editMe                     PATCH  users/me                                               needed   200      200    200     200     200    200
    deleteMe                   DELETE users/me                                               needed   204      204    204     204     204    204
    exportMe                   GET    users/me/export                                        needed   200      200    200     200     200    200
    putPicture                 PUT    users/me/picture                                       needed   200      200    200     200     200    200
    removePicture              DELETE users/me/picture                                       needed   204      204    204     204     204    204
    getCalendarLink            GET    users/me/calendar                                      needed   200      200    200     200     200    200
    makeCalendarLink           POST   users/me/calendar                                      needed   201      201    201     201     201    201
    revokeCalendarLink         DELETE users/me/calendar                                      needed   204      204    204     204     204    204
    searchUsers                GET    users                                                  needed   200      200    200     200     200    200
    listRecommendedUsers       GET    users/recommended                                      needed   200      200    200     200     200    200
    getUser                    GET    users/{id:user}                                        needed   200      200    200     404     200    200   404:user-not-found
    listFriends                GET    friends                                                needed   200      200    200     200     200    200
    endFriendship              DELETE friends/{userId:user}                                  needed   204      204    204     404     204    204   404:user-not-found
    listBlocks                 GET    blocks                                                 needed   200      200    200     200     200    200
    block                      PUT    blocks/{userId:user}                                   needed   204      204    204     204     204    422   422:invalid-fields
    unblock                    DELETE blocks/{userId:user}                                   needed   204      204    204     204     204    204
    report                     POST   reports                                                needed   201      201    201     201     201    422   422:invalid-fields
    listFriendRequests         GET    friend-requests                                        needed   200      200    200     200     200    200
    sendFriendRequest          POST   friend-requests                                        needed   201      409    409     404     409    422   404:user-not-found 409:already-friends 422:invalid-fields
    getFriendRequest           GET    friend-requests/{id:request}                           needed   404      404    404     404     404    200   404:friend-request-not-found
    cancelFriendRequest        DELETE friend-requests/{id:sentRequest}                       needed   404      404    404     404     404    200   404:friend-request-not-found
    acceptFriendRequest        POST   friend-requests/{id:request}/accept                    needed   404      404    404     404     404    200   404:friend-request-not-found
    declineFriendRequest       POST   friend-requests/{id:request}/decline                   needed   404      404    404     404     404    200   404:friend-request-not-found
    listEvents                 GET    events                                                 needed   200      200    200     200     200    200
    createEvent                POST   events                                                 needed   422      201    201     422     201    422   422:invalid-fields
    getEvent                   GET    events/{id:event}                                      needed   404      404    200     404     200    200   404:event-not-found
    editEvent                  PATCH  events/{id:event}                                      needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    listGuests                 GET    events/{id:event}/invitations                          needed   404      404    200     404     200    200   404:event-not-found
    inviteToEvent              POST   events/{id:event}/invitations                          needed   404      404    403     404     200    422   404:event-not-found 403:not-a-host 422:invalid-fields
    listInvitations            GET    invitations                                            needed   200      200    200     200     200    200
    answerInvitation           PUT    events/{id:event}/invitations/me                       needed   404      404    200     404     409    409   404:event-not-found 409:own-event
    setAnswer                  PUT    events/{id:event}/invitations/{userId:invitee}         needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    setAnswer                  PUT    events/{id:event}/invitations/{userId:visitor}         needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    setAnswer                  PUT    events/{id:event}/invitations/{userId:pending}         needed   404      404    403     404     409    409   404:event-not-found 403:not-a-host 409:approval-pending
    remindGuests               POST   events/{id:event}/reminders                            needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    duplicateEvent             POST   events/{id:event}/duplicate                            needed   404      404    403     404     201    201   404:event-not-found 403:not-a-host
    listLinks                  GET    events/{id:event}/links                                needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    createLink                 POST   events/{id:event}/links                                needed   404      404    403     404     201    201   404:event-not-found 403:not-a-host
    getLink                    GET    events/{id:event}/links/{linkId:link}                  needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    editLink                   PATCH  events/{id:event}/links/{linkId:link}                  needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    joinByLink                 POST   links/{token:linkToken}/join                           needed   200      200    200     404     409    409   404:link-not-found 409:own-event
    revokeLink                 DELETE events/{id:event}/links/{linkId:link}                  needed   404      404    403     404     204    204   404:event-not-found 403:not-a-host
    approveGuest               POST   events/{id:event}/invitations/{userId:invitee}/approve needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    approveGuest               POST   events/{id:event}/invitations/{userId:pending}/approve needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    withdrawInvitation         DELETE events/{id:event}/invitations/{userId:invitee}         needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    withdrawInvitation         DELETE events/{id:event}/invitations/{userId:visitor}         needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    withdrawInvitation         DELETE events/{id:event}/invitations/{userId:pending}         needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    addHost                    PUT    events/{id:event}/hosts/{userId:invitee}               needed   404      404    403     404     403    200   404:event-not-found 403:not-the-creator
    addHost                    PUT    events/{id:event}/hosts/{userId:cohost}                needed   404      404    403     404     403    200   404:event-not-found 403:not-the-creator
    listHostOffers             GET    events/{id:event}/host-offers                          needed   404      404    403     404     200    200   404:event-not-found 403:not-a-host
    removeHost                 DELETE events/{id:event}/hosts/{userId:invitee}               needed   404      404    403     404     403    204   404:event-not-found 403:not-a-host cohost:403:not-the-creator
    removeHost                 DELETE events/{id:event}/hosts/{userId:cohost}                needed   404      404    403     404     204    204   404:event-not-found 403:not-the-creator
    cancelEvent                DELETE events/{id:event}                                      needed   404      404    403     404     403    200   404:event-not-found 403:not-the-creator
    getEventCalendar           GET    events/{id:event}/calendar.ics                         needed   404      404    200     404     200    200   404:event-not-found
    listProposals              GET    proposals                                              needed   200      200    200     200     200    200
    acceptProposal             POST   proposals/{id:proposal}/accept                         needed   404      404    404     404     404    200   404:proposal-not-found
    declineProposal            POST   proposals/{id:proposal}/decline                        needed   404      404    404     404     404    204   404:proposal-not-found
    streamNotifications        GET    notifications/stream                                   needed   200      200    200     200     200    200
    validateCache              POST   cache/validate/{userId:user}                           needed   403      403    403     403     403    200   403:not-yours
    listNotifications          GET    notifications                                          needed   200      200    200     200     200    200
    markNotificationsRead      POST   notifications/read                                     needed   200      200    200     200     200    200
    getNotificationPreferences GET    notification-preferences                               needed   200      200    200     200     200    200
    setNotificationPreferences PUT    notification-preferences                               needed   200      200    200     200     200    200
    listDevices                GET    devices                                                needed   200      200    200     200     200    200
    registerDevice             PUT    devices                                                needed   201      201    201     201     201    201
    removeDevice               DELETE devices/{id:device}                                    needed   404      404    404     404     404    204   404:device-not-found
    """

  /// Whose lists a write touches, and which: the lists that get a new stamp in the transaction of the last call that
  /// changes something, in the order of the columns. If an operation has several lines, the name of the thing follows
  /// its own. `asker` has sent the owner a request, and `asked` has got one. A worker touches notifications later.
  static let touches = [
    "editMe":
      "friend: friends; invitee: friends, events, invitations; cohost: friends, events; "
      + "owner: profile, friendRequests, sentFriendRequests, events; asker: sentFriendRequests; "
      + "asked: friendRequests",
    "deleteMe":
      "owner: profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications, "
      + "notificationPreferences; asker: sentFriendRequests; asked: friendRequests",
    "putPicture":
      "friend: friends; invitee: friends, events, invitations; cohost: friends, events; "
      + "owner: profile, friendRequests, sentFriendRequests, events; asker: sentFriendRequests; "
      + "asked: friendRequests",
    "endFriendship": "cohost: friends; owner: friends",
    "block": "cohost: friends, events, blocks; owner: friends, events",
    "sendFriendRequest": "stranger: sentFriendRequests; owner: friendRequests",
    "cancelFriendRequest": "owner: sentFriendRequests; asked: friendRequests",
    "acceptFriendRequest": "owner: friends, friendRequests; asker: friends, sentFriendRequests",
    "declineFriendRequest": "owner: friendRequests; asker: sentFriendRequests",
    "createEvent": "cohost: events; owner: events, invitations",
    "editEvent": "invitee: events, invitations; cohost: events; owner: events",
    "answerInvitation": "invitee: events, invitations; cohost: events; owner: events",
    "setAnswer invitee": "invitee: events, invitations; cohost: events; owner: events",
    "setAnswer visitor": "invitee: events, invitations; cohost: events; owner: events",
    "duplicateEvent": "invitee: events, invitations; owner: events",
    "joinByLink":
      "stranger: events, invitations; friend: events, invitations; invitee: events, invitations; cohost: events; "
      + "owner: events",
    "approveGuest pending": "invitee: events, invitations; cohost: events; owner: events",
    "withdrawInvitation invitee": "invitee: events, invitations; cohost: events; owner: events",
    "withdrawInvitation visitor": "invitee: events, invitations; cohost: events; owner: events",
    "withdrawInvitation pending": "invitee: events, invitations; cohost: events; owner: events",
    "removeHost cohost": "invitee: events, invitations; cohost: events; owner: events",
    "cancelEvent": "invitee: events, invitations; cohost: events; owner: events",
    "acceptProposal": "friend: events; owner: events",
    "setNotificationPreferences": "owner: notificationPreferences",
  ]

  /// A valid body for each operation that takes one, by its name. `<other>` is the user whom it names, `<me>` the
  /// caller's username, `<password>` the caller's password, `<refreshToken>` a refresh token of the caller, `<new>` a
  /// word that no other body has, and every other word a thing.
  static let bodies = [
    "register": #"{"username": "<new>", "email": "<new>@example.com", "password": "<password>"}"#,
    "login": #"{"login": "<me>", "password": "<password>", "device": "phone"}"#,
    "refresh": #"{"refreshToken": "<refreshToken>"}"#,
    "requestPasswordReset": #"{"email": "<me>@example.com"}"#,
    "confirmPasswordReset": #"{"token": "<resetToken>", "newPassword": "<password> 2"}"#,
    "verifyEmail": #"{"token": "<verifyToken>"}"#,
    "undoEmailChange": #"{"token": "<undoToken>"}"#,
    "requestCode": #"{"email": "<me>@example.com"}"#,
    "confirmCode": #"{"token": "<codeToken>", "device": "phone"}"#,
    "signInWithApple": #"{"idToken": "<newAppleToken>", "displayName": "Nia"}"#,
    "signInWithGoogle": #"{"idToken": "<newGoogleToken>", "device": "phone"}"#,
    "notifyOfAppleAccount": #"{"payload": "<appleNotification>"}"#,
    "linkApple": #"{"idToken": "<appleToken>", "currentPassword": "<password>"}"#,
    "linkGoogle": #"{"idToken": "<googleToken>", "currentPassword": "<password>"}"#,
    "unlinkApple": #"{"currentPassword": "<password>"}"#,
    "unlinkGoogle": #"{"currentPassword": "<password>"}"#,
    "changePassword": #"{"currentPassword": "<password>", "newPassword": "<password> 2"}"#,
    "editMe": #"{"displayName": "Another name", "bio": null}"#,
    "deleteMe": #"{"password": "<password>"}"#,
    "report": #"{"userId": "<other>", "reason": "other", "text": "Rude"}"#,
    "sendFriendRequest": #"{"receiverId": "<other>"}"#,
    "createEvent": """
    {"title": "Picnic", "note": "Bring \\ud83c\\udf53", "startTime": "2030-05-01T18:00:00Z", "capacity": 5,
     "endTime": "2030-05-01T22:00:00.5+02:00", "timeZone": "Europe/Berlin", "inviteeIds": ["<other>"],
     "location": {"name": "Park", "latitude": 52.5, "longitude": 13.4}}
    """,
    "editEvent": #"{"title": "Dinner", "note": null, "capacity": 5}"#,
    "inviteToEvent": #"{"userIds": ["<other>"]}"#,
    "setAnswer": #"{"status": "maybe"}"#,
    "duplicateEvent": #"{"startTime": "2031-05-01T18:00:00Z", "invite": true}"#,
    "createLink": #"{"kind": "answer"}"#,
    "editLink": #"{"shows": "names"}"#,
    "answerInvitation": #"{"status": "going"}"#,
    "validateCache": #"{"friends": "2026-05-01T18:00:00Z", "events": null}"#,
    "markNotificationsRead": #"{"before": "2026-05-01T18:00:00.123456Z"}"#,
    "setNotificationPreferences":
      #"{"event-updated": false, "friend-request": true, "timestamp": "2026-05-01T18:00:00.123456Z"}"#,
    "registerDevice": #"{"platform": "log", "token": "<new>"}"#,
  ]
}
