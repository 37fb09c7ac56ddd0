// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A list of wallets with the read function and the events of Chainalysis's sanctions oracle, which the owner writes.
contract ScreeningOracle {
    address public immutable owner;
    mapping(address => bool) public isSanctioned;

    event SanctionedAddressesAdded(address[] addrs);
    event SanctionedAddressesRemoved(address[] addrs);

    constructor(address[] memory listed) {
        owner = msg.sender;
        _write(listed, true);
        emit SanctionedAddressesAdded(listed);
    }

    function addToSanctionsList(address[] memory added) external {
        require(msg.sender == owner, "only the owner writes the list");
        _write(added, true);
        emit SanctionedAddressesAdded(added);
    }

    function removeFromSanctionsList(address[] memory removed) external {
        require(msg.sender == owner, "only the owner writes the list");
        _write(removed, false);
        emit SanctionedAddressesRemoved(removed);
    }

    function _write(address[] memory wallets, bool listed) private {
        for (uint256 i = 0; i < wallets.length; i++) isSanctioned[wallets[i]] = listed;
    }
}
