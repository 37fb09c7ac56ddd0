// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A list of wallets with the functions and the events of Chainalysis's sanctions oracle, which the owner writes.
contract ScreeningOracle {
    address private immutable owner;
    mapping(address => bool) public isSanctioned;

    event SanctionedAddressesAdded(address[] addrs);
    event SanctionedAddressesRemoved(address[] addrs);

    constructor(address[] memory listed) {
        owner = msg.sender;
        addToSanctionsList(listed);
    }

    function addToSanctionsList(address[] memory added) public {
        _write(added, true);
        emit SanctionedAddressesAdded(added);
    }

    function removeFromSanctionsList(address[] memory removed) external {
        _write(removed, false);
        emit SanctionedAddressesRemoved(removed);
    }

    function _write(address[] memory wallets, bool listed) private {
        require(msg.sender == owner, "only the owner writes the list");
        for (uint256 i = 0; i < wallets.length; i++) isSanctioned[wallets[i]] = listed;
    }
}
